// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/high_precision_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/protocol/estimates.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/statistics/proportions.h"
#include "experiments/tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

/// Attention kernels to try, the arm's own first: both caches are read by the same one.
constexpr std::array<std::string_view, 2> kernels{
    "", "attention.prefill=h100-eager,attention.decode=h100-eager"};
constexpr std::string_view wide = "kv=f32";

/// Names of what is compared, as records and tables have them.
constexpr std::array<std::string_view, 3> pair_names{"own format", "float32",
                                                     "own format and float32"};

class HighPrecisionCache : public Study {
 public:
  [[nodiscard]] Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  [[nodiscard]] Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  [[nodiscard]] Result<StudySummary> summarize(const StudyRecords& records) const override;
};

/// Both arms with their cache in either format, prepared.
struct CacheArms {
  StudyArm on;
  StudyArm off;
  StudyArm wide_on;
  StudyArm wide_off;
};

Result<StudyArm> prepared(const StudySetup& setup, const Arm& arm, std::string_view settings) {
  if (settings.empty()) return prepare(*setup.engine, arm);
  return first_accepted(*setup.engine, arm, std::array{settings});
}

Result<CacheArms> arms_with(const StudySetup& setup, std::string_view kernel) {
  const std::string settings =
      kernel.empty() ? std::string(wide) : fmt::format("{},{}", wide, kernel);
  Result<StudyArm> wide_on = prepared(setup, setup.on, settings);
  if (!wide_on) return wide_on.error();
  Result<StudyArm> wide_off = prepared(setup, setup.off, settings);
  if (!wide_off) return wide_off.error();
  Result<StudyArm> on = prepared(setup, setup.on, kernel);
  if (!on) return on.error();
  Result<StudyArm> off = prepared(setup, setup.off, kernel);
  if (!off) return off.error();
  return CacheArms{std::move(*on), std::move(*off), std::move(*wide_on), std::move(*wide_off)};
}

/// With the first kernel that takes both caches. Errors (unavailable): what the engine says of the
/// arm's own.
Result<CacheArms> cache_arms(const StudySetup& setup) {
  std::optional<Error> refused;
  for (const std::string_view kernel : kernels) {
    Result<CacheArms> arms = arms_with(setup, kernel);
    if (arms || arms.error().kind != ErrorKind::unavailable) return arms;
    if (!refused) refused = arms.error();
  }
  return refused.value_or(Error{ErrorKind::unavailable, "no kernel"});
}

/// The three pairs of texts that compute() compares.
Result<std::int64_t> work_of(TextGroup& texts, std::int64_t length) {
  Result<std::int64_t> work = texts.work(length);  // on, off, wide_on, wide_off
  for (const std::size_t again : {std::size_t{0}, std::size_t{2}}) {
    if (!work) return work;
    const Result<std::int64_t> text = texts.arms[again].text(length, texts.steps);
    if (!text) return text;
    *work += *text;
  }
  return work;
}

Result<std::vector<StudyUnit>> HighPrecisionCache::units(const StudySetup& setup) const {
  Result<CacheArms> arms = cache_arms(setup);
  if (!arms && arms.error().kind != ErrorKind::unavailable) return arms.error();
  std::vector<StudyUnit> units;
  units.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) units.push_back({"texts", i, 0, 0});
  if (!arms) return units;  // left out
  TextGroup texts{.steps = setup.new_tokens};
  for (StudyArm* const arm : {&arms->on, &arms->off, &arms->wide_on, &arms->wide_off}) {
    texts.arms.emplace_back(std::move(*arm));
  }
  for (StudyUnit& unit : units) {
    const Result<std::int64_t> work = work_of(texts, prompt_tokens(setup, unit.prompt));
    if (!work) return work.error();
    unit.rows = *work;
  }
  return units;
}

Json json_of_pair(const PairText& pair) {
  Json kl = Json::array();
  for (const ForcedStep& step : pair.forced) kl.push_back(json_of(step.kl));
  const std::optional<std::int64_t>& flip = pair.flip;
  return {{"flip", flip ? Json(*flip) : Json(nullptr)}, {"kl", std::move(kl)}};
}

Result<Json> HighPrecisionCache::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const Result<CacheArms> arms = cache_arms(setup);
  if (!arms) {
    if (arms.error().kind != ErrorKind::unavailable) return arms.error();
    return Json{{"left_out", arms.error().message}};
  }
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const PairTextOptions options{.sampling = {},
                                .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                                .new_tokens = setup.new_tokens,
                                .stop_tokens = stops,
                                .follows_apart = false};
  const std::array<std::pair<const StudyArm*, const StudyArm*>, pair_names.size()> pairs{
      {{&arms->on, &arms->off}, {&arms->wide_on, &arms->wide_off}, {&arms->on, &arms->wide_on}}};
  Json result = {{"on", to_text(arms->on.arm)}, {"float32", to_text(arms->wide_on.arm)}};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto texts = compare_texts(*pairs[i].first, *pairs[i].second, prompt.prompt.ids, options);
    if (!texts) return texts.error();
    result["pairs"][std::string(pair_names[i])] = json_of_pair(*texts);
  }
  return result;
}

/// What all prompts say of one pair of arms.
struct PairFigures {
  std::vector<bool> parted;             ///< by prompt
  std::vector<std::vector<double>> kl;  ///< [prompt][step]

  void add(const Json& values) {
    parted.push_back(!values.at("flip").is_null());
    std::vector<double>& steps = kl.emplace_back();
    for (const Json& each : values.at("kl")) steps.push_back(number_of(each).value_or(0));
  }
};

Result<StudySummary> left_out(const std::string& reason) {
  StudySummary summary;
  summary.headline = "Left out: " + reason;
  summary.result = {{"left_out", reason}};
  return summary;
}

Result<StudySummary> HighPrecisionCache::summarize(const StudyRecords& records) const {
  std::array<PairFigures, pair_names.size()> pairs;
  std::string arm;
  for (const StudyRecords::Unit& unit : records.units) {
    if (unit.values.contains("left_out")) return left_out(unit.values.at("left_out"));
    arm = unit.values.at("float32").get<std::string>();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i].add(unit.values.at("pairs").at(pair_names[i]));
    }
  }
  StudySummary summary;
  SummaryTable table;
  table.title = "texts with the cache against texts without it, by the cache's format";
  table.columns = {{"cache", "cache", "", true},
                   {"parted", "texts that part", ""},
                   {"share", "(95 %)", ""},
                   {"kl", "KL, same tokens (95 %)", "nats"}};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const statistics::Count count{std::ranges::count(pairs[i].parted, true),
                                  std::ssize(pairs[i].parted)};
    const auto share = statistics::wilson_interval(count);
    if (!share) return share.error();
    const Result<Json> kl = mean_estimate(pairs[i].kl);
    if (!kl) return kl.error();
    table.rows.push_back({cell(pair_names[i]),
                          {fmt::format("{} of {}", count.successes, count.trials), count.successes},
                          percent_cell(*share),
                          range_cell(*kl)});
    summary.result[std::string(pair_names[i])] = {{"parted", count.successes},
                                                  {"texts", count.trials},
                                                  {"share", json_of(*share)},
                                                  {"kl", *kl}};
  }
  statistics::DiscordantPairs discordant;
  for (std::size_t i = 0; i < pairs[0].parted.size(); ++i) {
    if (pairs[0].parted[i] && !pairs[1].parted[i]) ++discordant.only_first;
    if (pairs[1].parted[i] && !pairs[0].parted[i]) ++discordant.only_second;
  }
  const auto test = statistics::mcnemar(discordant);
  if (!test) return test.error();
  summary.result["p"] = json_of(test->p);
  table.notes = {fmt::format("float32: {}; p of the first two {:.4g} (exact McNemar over prompts)",
                             arm, test->p),
                 "last row: the arm with the cache in its own format against the same in float32"};
  summary.headline =
      fmt::format("{} of {} texts part with the cache in its own format, {} with one of float32.",
                  std::ranges::count(pairs[0].parted, true), pairs[0].parted.size(),
                  std::ranges::count(pairs[1].parted, true));
  summary.tables.push_back(std::move(table));
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_high_precision_cache() {
  return std::make_unique<HighPrecisionCache>();
}

}  // namespace kvsim::experiments
