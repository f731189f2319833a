// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/property_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/fuzz/property_report.h"
#include "cli/fuzz/request.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/sink.h"
#include "fuzz/property/property.h"
#include "sim/decoder/plants.h"

namespace kvsim {
namespace {

constexpr std::int64_t default_runs = 100;
/// Runs after which a canary that has not failed says that failures are not seen.
constexpr std::int64_t canary_runs = 32;

struct PropertyRequest {
  std::vector<const fuzz::Property*> properties;
  std::int64_t runs = 0;                ///< of each property
  std::optional<std::int64_t> seconds;  ///< of all properties together
  std::uint64_t seed = 0;
  Plant plant = Plant::none;
  std::optional<std::string> corpus;
};

Result<PropertyRequest> property_request(const ParsedOptions& options, const std::string& name) {
  PropertyRequest request;
  if (name == "all") {
    for (const fuzz::Property& property : fuzz::properties()) {
      request.properties.push_back(&property);
    }
  } else {
    const auto property = fuzz::find_property(name);
    if (!property) return property.error();
    request.properties.push_back(*property);
  }
  auto limits = search_limits(options, default_runs);
  if (!limits) return limits.error();
  request.seed = limits->seed;
  request.seconds = limits->seconds;
  request.runs = std::min(limits->runs, fuzz::most_property_runs);
  request.corpus = limits->corpus;
  if (const auto plant = options.value("--plant")) {
    const auto found = find_plant(*plant);
    if (!found) return found.error();
    request.plant = *found;
  }
  return request;
}

/// Writes the violating run to the folder.
Result<std::string> store_violation(const std::string& folder, const fuzz::PropertyCase& run,
                                    const std::string& reason) {
  std::error_code failed;  // told by writing the file
  std::filesystem::create_directories(folder, failed);
  std::string path = fmt::format("{}/{}-{}-{}.case", folder, run.property, run.seed, run.run);
  const auto written = write_output_file(path, fuzz::to_text(run, reason));
  if (!written) return written.error();
  return path;
}

/// The runs of one property; they end early where its share of the time is over.
PropertyResult run_one(const PropertyRequest& request, std::size_t index, Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto count = static_cast<double>(request.properties.size());
  PropertyResult result;
  result.property = request.properties[index];
  std::int64_t made = 0;
  const auto go_on = [&] {
    double share = static_cast<double>(++made) / static_cast<double>(request.runs);
    if (request.seconds) {
      const std::chrono::duration<double> passed = Clock::now() - start;
      share = std::max(share, passed.count() * count / static_cast<double>(*request.seconds));
    }
    progress.show(std::min(1.0, (static_cast<double>(index) + std::min(1.0, share)) / count));
    return share < 1;
  };
  result.tally = fuzz::run_property(
      *result.property,
      {.seed = request.seed, .first = 0, .count = request.runs, .plant = request.plant}, go_on);
  result.last = {std::string(result.property->name), request.seed, result.tally.runs - 1,
                 request.plant};
  const bool violated = result.tally.violation.has_value();
  // Asked for by name, a canary is a property that fails.
  const bool is_canary = result.property->is_canary && request.properties.size() > 1;
  result.fails = is_canary ? !violated && result.tally.runs >= canary_runs : violated;
  return result;
}

}  // namespace

Result<Answer> run_fuzz_property(const ParsedOptions& options) {
  constexpr auto accepted =
      std::to_array<std::string_view>({"--runs", "--time", "--seed", "--corpus", "--plant"});
  if (options.positionals().size() != 2) {
    return Error{ErrorKind::usage,
                 "fuzz property: list, all or the name of a property is needed: kvsim fuzz "
                 "property list"};
  }
  for (const OptionSpec& option : fuzz_command.options) {
    if (!options.has(option.name) || std::ranges::find(accepted, option.name) != accepted.end()) {
      continue;
    }
    return Error{ErrorKind::usage, fmt::format("{} is not of fuzz property, which takes {}",
                                               option.name, join_words(accepted))};
  }
  const std::string& name = options.positionals()[1];
  Answer answer;
  if (name == "list") {
    answer.report = property_list_report();
    return answer;
  }
  const auto request = property_request(options, name);
  if (!request) return request.error();
  std::vector<PropertyResult> results;
  results.reserve(request->properties.size());
  {
    Progress progress("fuzz property", options);
    for (std::size_t i = 0; i < request->properties.size(); ++i) {
      results.push_back(run_one(*request, i, progress));
      PropertyResult& result = results.back();
      const std::optional<std::string>& corpus = request->corpus;
      const auto& violation = result.tally.violation;
      if (!corpus || !violation || !result.fails) continue;
      auto file = store_violation(*corpus, result.last, *violation);
      if (!file) return file.error();
      result.file = *std::move(file);
    }
  }
  answer.report = property_report(name, request->seed, results);
  const auto failed = std::ranges::count_if(results, &PropertyResult::fails);
  if (failed > 0) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint =
        fmt::format("{} {} violated", failed, failed == 1 ? "property is" : "properties are");
  }
  return answer;
}

Result<Answer> replay_property(const std::string& path, std::string_view text) {
  const auto run = fuzz::parse_property_case(text);
  if (!run) {
    return Error{run.error().kind, fmt::format("{}: {}", printable(path), run.error().message)};
  }
  const auto property = fuzz::find_property(run->property);
  if (!property) return property.error();
  const fuzz::PropertyTally tally = fuzz::run_property(
      **property, {.seed = run->seed, .first = run->run, .count = 1, .plant = run->plant});
  Answer answer;
  answer.report = property_replay_report(path, *run, tally);
  if (tally.violation) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = fmt::format("{} is violated", run->property);
  }
  return answer;
}

}  // namespace kvsim
