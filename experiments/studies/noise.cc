// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/metrics/token_divergence.h"
#include "experiments/protocol/estimates.h"
#include "experiments/protocol/forks.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/protocol/state_noise.h"
#include "experiments/statistics/proportions.h"
#include "experiments/tables.h"
#include "experiments/work.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t forks_of_a_text = 4;
/// Tokens that are followed behind a fork.
constexpr std::int64_t follows = 16;

/// What a cache is replaced by.
struct NoiseKind {
  std::string_view name;
  std::optional<double> ulps;  ///< on every number; nothing: of the real path's size
};
constexpr std::string_view real_path = "real path";
constexpr std::array noise_kinds{NoiseKind{"noise of its size", std::nullopt},
                                 NoiseKind{"1/2 ulp", 0.5}, NoiseKind{"1 ulp", 1.0},
                                 NoiseKind{"2 ulp", 2.0}};

class Noise : public Study {
 public:
  [[nodiscard]] Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  [[nodiscard]] Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  [[nodiscard]] Result<StudySummary> summarize(const StudyRecords& records) const override;
};

/// The live text, and at each fork the two caches, the live continuation and those of the paths.
Result<std::int64_t> work_of(ArmWork& live, ArmWork& rebuilt, std::int64_t prompt_tokens,
                             std::int64_t new_tokens) {
  Result<std::int64_t> work = live.text(prompt_tokens, new_tokens);
  if (!work) return work;
  constexpr std::int64_t rows = follows - 1 + (1 + std::ssize(noise_kinds)) * follows;
  for (const std::int64_t step : even_steps({.new_tokens = new_tokens, .tries = forks_of_a_text})) {
    const Result<std::int64_t> fork = fork_work(rebuilt, prompt_tokens, step);
    if (!fork) return fork;
    *work += *fork + rows;
  }
  return work;
}

Result<std::vector<StudyUnit>> Noise::units(const StudySetup& setup) const {
  if (setup.new_tokens < 3) {
    return Error{ErrorKind::usage,
                 fmt::format("noise with {} new tokens; accepted: 3 or more, as two caches differ "
                             "from the third step on",
                             setup.new_tokens)};
  }
  Result<ArmWork> live = ArmWork::of(*setup.engine, setup.on);
  if (!live) return live.error();
  Result<ArmWork> rebuilt = ArmWork::of(*setup.engine, one_shot_arm(setup.off));
  if (!rebuilt) return rebuilt.error();
  std::vector<StudyUnit> units;
  units.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> work =
        work_of(*live, *rebuilt, prompt_tokens(setup, i), setup.new_tokens);
    if (!work) return work.error();
    units.push_back({"forks", i, 0, *work});
  }
  return units;
}

/// A changed cache against the live one: `text` is the live one's behind the fork.
Result<Json> measure(Fork changed, const ForkPair& pair, const std::vector<std::int64_t>& text,
                     std::string_view name) {
  const auto distance =
      state_distance(*pair.live.sequence, *changed.sequence, pair.live.cached_rows());
  if (!distance) return distance.error();
  const Result<EnginePass> pass = changed.pass({});
  if (!pass) return pass.error();
  const Result<Divergence> apart = divergence(pass->logits, pair.live_pass.logits);
  if (!apart) return apart.error();
  const std::int64_t token = argmax_of(pass->logits);
  const auto own = greedy_continuation(changed, token, follows);
  if (!own) return own.error();
  const auto parts = metrics::token_divergence(text, *own).flip_index;
  return Json{{"name", name},
              {"kl", json_of(apart->kl)},
              {"parts", parts ? Json(*parts) : Json(nullptr)},
              {"squares", json_of(distance->squares)},
              {"norm_squares", json_of(distance->norm_squares)},
              {"differing", distance->differing},
              {"numbers", distance->numbers}};
}

Result<Json> measure_noise(const ForkPair& pair, const NoiseKind& kind,
                           const std::vector<std::int64_t>& text, std::uint64_t stream) {
  Result<Fork> changed = pair.live.copy();
  if (!changed) return changed.error();
  const std::int64_t rows = pair.live.cached_rows();
  const NoiseAddress address{.stream = stream};
  const Result<bool> done =
      kind.ulps ? add_ulp_noise(*changed->sequence, rows, *kind.ulps, address)
                : add_matched_noise(*changed->sequence, *pair.rebuilt.sequence, rows, address);
  if (!done) return done.error();
  return measure(std::move(*changed), pair, text, kind.name);
}

Result<Json> measure_fork_paths(const ForkPair& pair, std::uint64_t stream) {
  Result<Fork> live = pair.live.copy();
  if (!live) return live.error();
  const auto text = greedy_continuation(*live, argmax_of(pair.live_pass.logits), follows);
  if (!text) return text.error();
  Json paths = Json::array();
  Result<Fork> real = pair.rebuilt.copy();
  if (!real) return real.error();
  Result<Json> numbers = measure(std::move(*real), pair, *text, real_path);
  if (!numbers) return numbers.error();
  paths.push_back(std::move(*numbers));
  for (const NoiseKind& kind : noise_kinds) {
    numbers = measure_noise(pair, kind, *text, stream++);
    if (!numbers) return numbers.error();
    paths.push_back(std::move(*numbers));
  }
  return Json{{"step", pair.step}, {"cached_rows", pair.live.cached_rows()}, {"paths", paths}};
}

Result<Json> Noise::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const Result<StudyArm> live = prepare(*setup.engine, setup.on);
  if (!live) return live.error();
  const Result<StudyArm> rebuilt = prepare(*setup.engine, one_shot_arm(setup.off));
  if (!rebuilt) return rebuilt.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const auto pairs = even_forks(*live, *rebuilt, prompt.prompt.ids,
                                {.new_tokens = setup.new_tokens,
                                 .stop_tokens = stops,
                                 .room = follows,
                                 .tries = forks_of_a_text});
  if (!pairs) return pairs.error();
  Json forks = Json::array();
  for (const ForkPair& pair : *pairs) {
    const auto number = static_cast<std::uint64_t>(prompt.prompt.number);
    const std::uint64_t stream = (number << 32U) + 16 * static_cast<std::uint64_t>(pair.step);
    Result<Json> paths = measure_fork_paths(pair, stream);
    if (!paths) return paths.error();
    forks.push_back(std::move(*paths));
  }
  return Json{{"forks", std::move(forks)}};
}

/// What all prompts say of one path.
struct PathFigures {
  std::string name;
  std::vector<std::vector<double>> kl = {};  ///< [prompt][fork]
  std::vector<bool> turned = {};             ///< by prompt: some fork's text parts
  std::int64_t forks = 0;
  std::int64_t turned_forks = 0;
  double squares = 0;
  double norm_squares = 0;

  [[nodiscard]] statistics::Count prompts() const {
    return {std::ranges::count(turned, true), std::ssize(turned)};
  }
};

std::vector<PathFigures> figures_of(const StudyRecords& records) {
  std::vector<PathFigures> paths;
  for (const StudyRecords::Unit& unit : records.units) {
    const Json& forks = unit.values.at("forks");
    for (const Json& fork : forks) {
      for (std::size_t i = 0; i < fork.at("paths").size(); ++i) {
        const Json& path = fork.at("paths").at(i);
        if (i == paths.size()) paths.push_back({path.at("name").get<std::string>()});
        PathFigures& figures = paths[i];
        if (&fork == &forks.front()) {
          figures.kl.emplace_back();
          figures.turned.push_back(false);
        }
        figures.kl.back().push_back(number_of(path.at("kl")).value_or(0));
        figures.squares += number_of(path.at("squares")).value_or(0);
        figures.norm_squares += number_of(path.at("norm_squares")).value_or(0);
        ++figures.forks;
        if (path.at("parts").is_null()) continue;
        ++figures.turned_forks;
        figures.turned.back() = true;
      }
    }
  }
  return paths;
}

/// Prompts that one path turns and the other does not.
statistics::DiscordantPairs discordant(const PathFigures& first, const PathFigures& second) {
  statistics::DiscordantPairs pairs;
  for (std::size_t i = 0; i < first.turned.size(); ++i) {
    if (first.turned[i] && !second.turned[i]) ++pairs.only_first;
    if (second.turned[i] && !first.turned[i]) ++pairs.only_second;
  }
  return pairs;
}

Result<StudySummary> Noise::summarize(const StudyRecords& records) const {
  const std::vector<PathFigures> paths = figures_of(records);
  if (paths.empty()) {
    return Error{ErrorKind::cannot_tell, "noise: no text has three tokens; accepted: a longer one"};
  }
  StudySummary summary;
  SummaryTable table;
  table.title = "the cache replaced at forks of the text, same tokens";
  table.columns = {{"path", "replaced by", "", true},
                   {"size", "relative L2", ""},
                   {"kl", "KL (95 %)", "nats"},
                   {"forks", "forks that turn", ""},
                   {"prompts", "prompts that do (95 %)", ""},
                   {"p", "p", ""}};
  for (const PathFigures& path : paths) {
    const auto share = statistics::wilson_interval(path.prompts());
    if (!share) return share.error();
    const statistics::DiscordantPairs pairs = discordant(path, paths.front());
    const auto test = statistics::mcnemar(pairs);
    if (!test) return test.error();
    const Result<Json> kl = mean_estimate(path.kl);
    if (!kl) return kl.error();
    const double size = std::sqrt(path.squares / path.norm_squares);
    const bool is_real = &path == &paths.front();
    table.rows.push_back(
        {cell(path.name),
         cell(size),
         range_cell(*kl),
         {fmt::format("{} of {}", path.turned_forks, path.forks), path.turned_forks},
         percent_cell(*share),
         is_real ? cell("-") : cell(test->p)});
    summary.result[path.name] = {{"relative_l2", json_of(size)},
                                 {"kl", *kl},
                                 {"forks", path.forks},
                                 {"turned_forks", path.turned_forks},
                                 {"prompts", json_of(*share)},
                                 {"only_here", pairs.only_first},
                                 {"only_real_path", pairs.only_second},
                                 {"p", json_of(test->p)}};
  }
  table.notes = {
      fmt::format("a fork turns where one of the {} tokens behind it is another one than "
                  "with the cache as it was",
                  follows),
      "p: exact McNemar over prompts, against the real path"};
  const PathFigures& real = paths.front();
  const PathFigures& matched = paths.at(1);
  summary.headline =
      fmt::format("Another way of making the cache turns {} of {} forks, noise of its size {}.",
                  real.turned_forks, real.forks, matched.turned_forks);
  summary.tables.push_back(std::move(table));
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_noise() { return std::make_unique<Noise>(); }

}  // namespace kvsim::experiments
