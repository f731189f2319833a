// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/metrics/token_divergence.h"
#include "experiments/protocol/forks.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/studies/replay_summary.h"
#include "experiments/tables.h"
#include "experiments/work.h"
#include "run/divergence.h"
#include "sim/decoder/number_digest.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t pivots_of_a_text = 4;
/// Tokens that are followed behind a pivot.
constexpr std::int64_t follows = 16;

/// A way to have the live cache again.
struct ReplayRow {
  std::string_view name;
  /// Of a cache made anew; empty: another way, below.
  std::string_view constructor;
  bool takes_last_row = false;  ///< the pivot's own row is computed in the same pass
};
constexpr std::array replay_rows{
    ReplayRow{replay_replica, "", false},
    ReplayRow{"save and restore", "", false},
    ReplayRow{"token by token", "all-token-wise"},
    ReplayRow{"chunks of 16", "aligned-chunk(16)"},
    ReplayRow{"one pass", "one-shot"},
    ReplayRow{"sent again", "one-shot", true},
};

class Replay : public Study {
 public:
  [[nodiscard]] Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  [[nodiscard]] Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  [[nodiscard]] Result<StudySummary> summarize(const StudyRecords& records) const override {
    return summarize_replay(records);
  }
};

/// The settings of a part. Errors (unavailable): the engine lacks them.
Result<std::vector<ArmSetting>> settings_of(const StudySetup& setup, std::string_view part) {
  if (part == replay_usual) return setup.on.settings;
  const Result<StudyArm> arm = first_accepted(*setup.engine, setup.on, batch_invariant);
  if (!arm) return arm.error();
  return arm->arm.settings;
}

/// The ways to have a cache, and what they compute.
class ReplayWork {
 public:
  static Result<ReplayWork> of(const StudySetup& setup, const std::vector<ArmSetting>& settings) {
    Arm arm = setup.on;
    arm.settings = settings;
    Result<ArmWork> live = ArmWork::of(*setup.engine, arm);
    if (!live) return live.error();
    ReplayWork work(std::move(*live));
    for (const ReplayRow& row : replay_rows) {
      const Result<Arm> parsed = parse_arm(row.constructor.empty() ? "live" : row.constructor);
      if (!parsed) return parsed.error();
      Arm way = row.constructor.empty() ? arm : *parsed;
      way.settings = settings;
      Result<ArmWork> made = ArmWork::of(*setup.engine, way);
      if (!made) return made.error();
      work.ways_.push_back(std::move(*made));
    }
    return work;
  }

  /// The live text, and at each pivot its second cache, its continuation, and every way's cache
  /// with a continuation behind it.
  Result<std::int64_t> text(std::int64_t prompt_tokens, std::int64_t new_tokens);

 private:
  explicit ReplayWork(ArmWork live) : live_(std::move(live)) {}
  Result<std::int64_t> way(std::size_t row, std::int64_t prompt_tokens, std::int64_t step);

  ArmWork live_;
  std::vector<ArmWork> ways_;  ///< by row
};

Result<std::int64_t> ReplayWork::way(std::size_t row, std::int64_t prompt_tokens,
                                     std::int64_t step) {
  constexpr std::int64_t behind = follows;  // the pivot's own row and the steps that follow
  const ReplayRow& way = replay_rows.at(row);
  if (way.takes_last_row) return prompt_tokens + step + behind - 1;
  if (way.constructor.empty() && way.name != replay_replica) return behind;
  const Result<std::int64_t> cache = ways_[row].cache(prompt_tokens, step - 1);
  if (!cache) return cache.error();
  return *cache + behind;
}

Result<std::int64_t> ReplayWork::text(std::int64_t prompt_tokens, std::int64_t new_tokens) {
  Result<std::int64_t> work = live_.text(prompt_tokens, new_tokens);
  if (!work) return work;
  const auto one_pass = std::ranges::find(replay_rows, "one pass", &ReplayRow::name);
  const auto rebuilt = static_cast<std::size_t>(one_pass - replay_rows.begin());
  for (const std::int64_t step :
       even_steps({.new_tokens = new_tokens, .tries = pivots_of_a_text})) {
    const Result<std::int64_t> fork = fork_work(ways_[rebuilt], prompt_tokens, step);
    if (!fork) return fork.error();
    *work += *fork + follows - 1;
    for (std::size_t row = 0; row < ways_.size(); ++row) {
      const Result<std::int64_t> made = way(row, prompt_tokens, step);
      if (!made) return made;
      *work += *made;
    }
  }
  return work;
}

/// Nothing where the engine lacks the part's settings.
Result<std::optional<ReplayWork>> replay_work(const StudySetup& setup, std::string_view part) {
  const Result<std::vector<ArmSetting>> settings = settings_of(setup, part);
  if (!settings && settings.error().kind == ErrorKind::unavailable) {
    return std::optional<ReplayWork>();
  }
  if (!settings) return settings.error();
  Result<ReplayWork> work = ReplayWork::of(setup, *settings);
  if (!work) return work.error();
  return std::optional(std::move(*work));
}

Result<std::vector<StudyUnit>> Replay::units(const StudySetup& setup) const {
  if (setup.new_tokens < 3) {
    return Error{ErrorKind::usage,
                 fmt::format("replay with {} new tokens; accepted: 3 or more, as two caches differ "
                             "from the third step on",
                             setup.new_tokens)};
  }
  std::vector<StudyUnit> units;
  units.reserve(2 * setup.prompts.size());
  for (const std::string_view part : {replay_usual, replay_invariant}) {
    Result<std::optional<ReplayWork>> arms = replay_work(setup, part);
    if (!arms) return arms.error();
    std::optional<ReplayWork>& has_arms = *arms;
    for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
      StudyUnit unit{std::string(part), i, 0, 0};
      if (has_arms) {
        const Result<std::int64_t> work = has_arms->text(prompt_tokens(setup, i), setup.new_tokens);
        if (!work) return work.error();
        unit.rows = *work;
      }
      units.push_back(std::move(unit));
    }
  }
  return units;
}

/// One digest for each layer's keys, or values, of all rows.
Result<std::vector<std::string>> digests_of(const EngineSequence& sequence, KvPart part,
                                            std::int64_t rows) {
  const StateShape shape = sequence.state_shape();
  std::vector<std::string> digests;
  digests.reserve(static_cast<std::size_t>(shape.layers));
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto numbers = sequence.state({layer, part, 0, rows});
    if (!numbers) return numbers.error();
    digests.push_back(decoder::number_digest(*numbers, shape.format == softfloat::binary64));
  }
  return digests;
}

/// The live side of a pivot.
struct Pivot {
  const ForkPair& pair;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::vector<std::int64_t> text;  ///< behind it
};

Result<Pivot> pivot_of(const ForkPair& pair) {
  Pivot pivot{pair, {}, {}, {}};
  const std::int64_t rows = pair.live.cached_rows();
  auto digests = digests_of(*pair.live.sequence, KvPart::key, rows);
  if (!digests) return digests.error();
  pivot.keys = std::move(*digests);
  digests = digests_of(*pair.live.sequence, KvPart::value, rows);
  if (!digests) return digests.error();
  pivot.values = std::move(*digests);
  Result<Fork> live = pair.live.copy();
  if (!live) return live.error();
  auto text = greedy_continuation(*live, argmax_of(pair.live_pass.logits), follows);
  if (!text) return text.error();
  pivot.text = std::move(*text);
  return pivot;
}

/// Indices at which two lists of one length differ.
std::vector<std::size_t> differing(const std::vector<std::string>& a,
                                   const std::vector<std::string>& b) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) indices.push_back(i);
  }
  return indices;
}

/// Another cache against the live one.
Result<Json> measure(const Pivot& pivot, Fork other, const EnginePass& pass,
                     std::string_view name) {
  const std::int64_t rows = pivot.pair.live.cached_rows();
  const auto keys = digests_of(*other.sequence, KvPart::key, rows);
  if (!keys) return keys.error();
  const auto values = digests_of(*other.sequence, KvPart::value, rows);
  if (!values) return values.error();
  const auto apart = divergence(pass.logits, pivot.pair.live_pass.logits);
  if (!apart) return apart.error();
  const auto text = greedy_continuation(other, argmax_of(pass.logits), follows);
  if (!text) return text.error();
  const auto parts = metrics::token_divergence(pivot.text, *text).flip_index;
  return Json{{"name", name},
              {"key_layers", differing(pivot.keys, *keys)},
              {"value_layers", differing(pivot.values, *values)},
              {"equal_logits", pass.logits == pivot.pair.live_pass.logits},
              {"kl", json_of(apart->kl)},
              {"parts", parts ? Json(*parts) : Json(nullptr)}};
}

/// Both arms' settings, and the rows' own ways.
struct Replayed {
  const StudySetup& setup;
  const StudyPrompt& prompt;
  std::vector<ArmSetting> settings;
};

/// The arm of a row, on the settings at hand.
Result<StudyArm> arm_of(const Replayed& replayed, std::string_view constructor) {
  Result<Arm> arm = parse_arm(constructor);
  if (!arm) return arm.error();
  arm->settings = replayed.settings;
  return prepare(*replayed.setup.engine, *arm);
}

Result<Fork> built(const Replayed& replayed, const StudyArm& arm, const ForkPair& pair) {
  const std::span<const TokenId> tokens = pair.live.tokens;
  const auto prompt_tokens = replayed.prompt.prompt.ids.size();
  return built_fork(arm, tokens.first(prompt_tokens), tokens.subspan(prompt_tokens),
                    replayed.setup.new_tokens + follows);
}

/// One pass over all tokens, the pivot's own row included.
Result<Json> measure_sent_again(const Replayed& replayed, const Pivot& pivot, const StudyArm& arm,
                                std::string_view name) {
  const std::vector<TokenId>& tokens = pivot.pair.live.tokens;
  const std::int64_t prompt_tokens = std::ssize(replayed.prompt.prompt.ids);
  auto sequence = arm.engine->open(std::ssize(tokens) + follows, {.prompt_tokens = prompt_tokens});
  if (!sequence) return sequence.error();
  const auto pass = (*sequence)->pass(tokens, {0, std::ssize(tokens), 0}, {});
  if (!pass) return pass.error();
  return measure(pivot, Fork{std::move(*sequence), tokens}, *pass, name);
}

Result<Json> measure_row(const Replayed& replayed, const StudyArm& live, const Pivot& pivot,
                         const ReplayRow& row) {
  Result<StudyArm> arm = Error{};  // outlives the sequence, which refers to it
  Result<Fork> other = Error{};
  if (row.constructor.empty()) {
    other = row.name == replay_replica ? built(replayed, live, pivot.pair) : pivot.pair.live.copy();
  } else {
    arm = arm_of(replayed, row.constructor);
    if (!arm) return arm.error();
    if (row.takes_last_row) return measure_sent_again(replayed, pivot, *arm, row.name);
    other = built(replayed, *arm, pivot.pair);
  }
  if (!other) return other.error();
  const Result<EnginePass> pass = other->pass({});
  if (!pass) return pass.error();
  return measure(pivot, std::move(*other), *pass, row.name);
}

Result<Json> measure_pivots(const Replayed& replayed) {
  Arm arm = replayed.setup.on;
  arm.settings = replayed.settings;
  const Result<StudyArm> live = prepare(*replayed.setup.engine, arm);
  if (!live) return live.error();
  const Result<StudyArm> rebuilt = arm_of(replayed, "one-shot");
  if (!rebuilt) return rebuilt.error();
  const std::vector<std::int64_t> stops =
      replayed.setup.stops ? replayed.setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const auto pairs = even_forks(*live, *rebuilt, replayed.prompt.prompt.ids,
                                {.new_tokens = replayed.setup.new_tokens,
                                 .stop_tokens = stops,
                                 .room = follows,
                                 .tries = pivots_of_a_text});
  if (!pairs) return pairs.error();
  Json pivots = Json::array();
  for (const ForkPair& pair : *pairs) {
    const Result<Pivot> pivot = pivot_of(pair);
    if (!pivot) return pivot.error();
    Json ways = Json::array();
    for (const ReplayRow& row : replay_rows) {
      Result<Json> numbers = measure_row(replayed, *live, *pivot, row);
      if (!numbers) return numbers.error();
      ways.push_back(std::move(*numbers));
    }
    pivots.push_back({{"step", pair.step},
                      {"cached_rows", pair.live.cached_rows()},
                      {"key_digests", pivot->keys},
                      {"value_digests", pivot->values},
                      {"ways", std::move(ways)}});
  }
  return Json{{"settings", arm.settings.empty() ? "" : to_text(arm)},
              {"pivots", std::move(pivots)}};
}

Result<Json> Replay::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const Result<std::vector<ArmSetting>> settings = settings_of(setup, unit.part);
  if (settings) return measure_pivots({setup, prompt, *settings});
  if (settings.error().kind != ErrorKind::unavailable) return settings.error();
  return Json{{"left_out", settings.error().message}};
}

}  // namespace

std::unique_ptr<Study> make_replay() { return std::make_unique<Replay>(); }

}  // namespace kvsim::experiments
