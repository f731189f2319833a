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
    for (std::size_t i = 0; i < setup.prompts.size(); ++i) {
      const std::int64_t rows = std::ssize(setup.prompts[i].prompt.ids) + setup.new_tokens;
      const auto ways = std::ssize(replay_rows);
      units.push_back({std::string(part), static_cast<std::int64_t>(i), 0,
                       rows + pivots_of_a_text * ways * (rows + follows)});
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
  if (unit.part == replay_usual) return measure_pivots({setup, prompt, setup.on.settings});
  const Result<StudyArm> arm = first_accepted(*setup.engine, setup.on, batch_invariant);
  if (arm) return measure_pivots({setup, prompt, arm->arm.settings});
  if (arm.error().kind != ErrorKind::unavailable) return arm.error();
  return Json{{"left_out", arm.error().message}};
}

}  // namespace

std::unique_ptr<Study> make_replay() { return std::make_unique<Replay>(); }

}  // namespace kvsim::experiments
