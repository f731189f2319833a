// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify_formats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/metrics/binary32_kl.h"
#include "experiments/metrics/drift.h"
#include "experiments/protocol/pair_text.h"
#include "experiments/studies/falsify_model.h"
#include "experiments/tables.h"
#include "run/divergence.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

/// A format and the settings that give it, engine by engine; the first that an engine takes counts.
constexpr std::array rows{
    FormatRow{.name = "as given"},
    FormatRow{"bfloat16", softfloat::bfloat16, {"storage=bfloat16"}},
    FormatRow{"binary16", softfloat::binary16, {"storage=binary16"}},
    FormatRow{"tf32", softfloat::tf32, {"dispatch=fp32,format.operands=tf32"}},
    FormatRow{"binary32", softfloat::binary32, {"storage=binary32", "dispatch=fp32"}},
    FormatRow{"binary64", softfloat::binary64, {"storage=binary64", "dispatch=binary64"}},
};

/// Two texts that get the same tokens.
struct OpenPair {
  const FormatRow* row = nullptr;
  std::unique_ptr<StudyArm> on_arm;  // its sequence refers to it
  std::unique_ptr<StudyArm> off_arm;
  std::unique_ptr<ArmSequence> on;
  std::unique_ptr<ArmSequence> off;
  EnginePass on_pass;
  EnginePass off_pass;
  double unit_roundoff = 0;
  Json kl = Json::array();
  Json kl_binary32 = Json::array();
  Json logits = Json::array();
};

/// The arm with some settings replaced.
Result<Arm> with_settings(Arm arm, std::string_view settings) {
  if (settings.empty()) return arm;
  const Result<Arm> wanted = parse_arm("live:" + std::string(settings));
  if (!wanted) return wanted.error();
  for (const ArmSetting& each : wanted->settings) {
    std::erase_if(arm.settings, [&](const ArmSetting& old) { return old.key == each.key; });
    arm.settings.push_back(each);
  }
  std::ranges::sort(arm.settings, {}, &ArmSetting::key);
  return arm;
}

Result<std::unique_ptr<ArmSequence>> open(const StudySetup& setup, const Arm& arm,
                                          std::string_view settings,
                                          std::span<const TokenId> prompt,
                                          std::unique_ptr<StudyArm>& prepared) {
  const Result<Arm> changed = with_settings(arm, settings);
  if (!changed) return changed.error();
  Result<StudyArm> made = prepare(*setup.engine, *changed);
  if (!made) return made.error();
  prepared = std::make_unique<StudyArm>(std::move(*made));
  Result<ArmSequence> text = prepared->open(prompt, falsify_steps(setup) + 1);
  if (!text) return text.error();
  return std::make_unique<ArmSequence>(std::move(*text));
}

/// Both arms after the prompt's pass: some settings are refused only there.
Result<OpenPair> open_pair(const StudySetup& setup, const FormatRow& row, std::string_view settings,
                           std::span<const TokenId> prompt) {
  OpenPair pair;
  pair.row = &row;
  auto on = open(setup, setup.on, settings, prompt, pair.on_arm);
  if (!on) return on.error();
  pair.on = std::move(*on);
  auto off = open(setup, setup.off, settings, prompt, pair.off_arm);
  if (!off) return off.error();
  pair.off = std::move(*off);
  Result<EnginePass> on_pass = pair.on->next({});
  if (!on_pass) return on_pass.error();
  Result<EnginePass> off_pass = pair.off->next({});
  if (!off_pass) return off_pass.error();
  pair.on_pass = std::move(*on_pass);
  pair.off_pass = std::move(*off_pass);
  const softfloat::Format& format =
      row.format ? *row.format : pair.on->sequence().state_shape().format;
  pair.unit_roundoff = std::ldexp(1.0, -format.precision);
  return pair;
}

/// Nothing where no settings of the row are the engine's.
std::optional<OpenPair> first_that_opens(const StudySetup& setup, const FormatRow& row,
                                         std::span<const TokenId> prompt) {
  for (const std::string_view settings : row.settings) {
    if (settings.empty() && row.format) continue;
    Result<OpenPair> pair = open_pair(setup, row, settings, prompt);
    if (pair) return std::move(*pair);
  }
  return {};
}

Result<bool> advance(OpenPair& pair, std::int64_t token) {
  pair.on->feed(static_cast<TokenId>(token));
  pair.off->feed(static_cast<TokenId>(token));
  Result<EnginePass> on = pair.on->next({});
  if (!on) return on.error();
  Result<EnginePass> off = pair.off->next({});
  if (!off) return off.error();
  pair.on_pass = std::move(*on);
  pair.off_pass = std::move(*off);
  const std::vector<double>& p = pair.on_pass.logits;
  const std::vector<double>& q = pair.off_pass.logits;
  const Result<Divergence> distance = divergence(p, q);
  if (!distance) return distance.error();
  const Result<double> rounded = metrics::kl_in_binary32(p, q);
  if (!rounded) return rounded.error();
  const Result<metrics::Drift> drift = metrics::drift(softfloat::binary64, q, p);
  if (!drift) return drift.error();
  pair.kl.push_back(json_of(distance->kl));
  pair.kl_binary32.push_back(json_of(*rounded));
  pair.logits.push_back(json_of(drift->relative.value_or(0)));
  return true;
}

/// The logits of a replica of the first pair's arm: what the evaluation alone gives.
Result<Json> replica_floor(const StudySetup& setup, const OpenPair& given,
                           std::span<const TokenId> prompt) {
  const Result<OpenPair> again = open_pair(setup, rows.front(), {}, prompt);
  if (!again) return again.error();
  const std::vector<double>& p = given.on_pass.logits;
  const std::vector<double>& q = again->on_pass.logits;
  const Result<Divergence> distance = divergence(p, q);
  if (!distance) return distance.error();
  const Result<double> rounded = metrics::kl_in_binary32(p, q);
  if (!rounded) return rounded.error();
  return Json{{"kl", json_of(distance->kl)}, {"kl_binary32", json_of(*rounded)}};
}

/// Whether a pass over one token is made: some settings are refused only there.
bool takes_a_pass(const StudyArm& arm, std::span<const TokenId> prompt) {
  Result<ArmSequence> text = arm.open(prompt.first(1), 1);
  return text && text->next({});
}

/// Both arms with the first settings of a row that the engine accepts.
void add_row_texts(const StudySetup& setup, const FormatRow& row, TextGroup& texts) {
  for (const std::string_view settings : row.settings) {
    if (settings.empty()) continue;
    const Result<Arm> on = with_settings(setup.on, settings);
    const Result<Arm> off = with_settings(setup.off, settings);
    if (!on || !off) continue;
    Result<TextGroup> added = TextGroup::of(*setup.engine, std::array{*on, *off}, texts.steps);
    if (!added || !std::ranges::all_of(added->arms, [&](const ArmWork& arm) {
          return takes_a_pass(arm.arm(), setup.prompts.front().prompt.ids);
        })) {
      continue;
    }
    for (ArmWork& arm : added->arms) texts.arms.push_back(std::move(arm));
    return;
  }
}

}  // namespace

std::span<const FormatRow> format_rows() { return rows; }

Result<std::vector<TextGroup>> formats_texts(const StudySetup& setup) {
  const std::array own{setup.on, setup.off};
  Result<TextGroup> texts = TextGroup::of(*setup.engine, own, falsify_steps(setup) + 1);
  if (!texts) return texts.error();
  const auto opened =
      texts->arms.front().arm().open(setup.prompts.front().prompt.ids, setup.new_tokens);
  if (!opened) return opened.error();
  const softfloat::Format given = opened->sequence().state_shape().format;
  for (const FormatRow& row : std::span(rows).subspan(1)) {
    if (row.format != given) add_row_texts(setup, row, *texts);
  }
  Result<TextGroup> replica = TextGroup::of(*setup.engine, own, 1);
  if (!replica) return replica.error();
  std::vector<TextGroup> groups;
  groups.push_back(std::move(*texts));
  groups.push_back(std::move(*replica));
  return groups;
}

Result<Json> measure_formats(const StudySetup& setup, const StudyUnit& unit) {
  const std::vector<TokenId>& prompt =
      setup.prompts[static_cast<std::size_t>(unit.prompt)].prompt.ids;
  Result<OpenPair> given = open_pair(setup, rows.front(), {}, prompt);
  if (!given) return given.error();
  Result<Json> replica = replica_floor(setup, *given, prompt);
  if (!replica) return replica.error();
  std::vector<OpenPair> pairs;
  pairs.reserve(rows.size());
  pairs.push_back(std::move(*given));
  Json missing = Json::array();
  const softfloat::Format own = pairs.front().on->sequence().state_shape().format;
  for (const FormatRow& row : std::span(rows).subspan(1)) {
    if (row.format == own) continue;  // as given
    std::optional<OpenPair> pair = first_that_opens(setup, row, prompt);
    if (pair) {
      pairs.push_back(std::move(*pair));
    } else {
      missing.push_back(row.name);
    }
  }
  for (std::int64_t step = 0; step < falsify_steps(setup); ++step) {
    const std::int64_t token = argmax_of(pairs.front().on_pass.logits);
    for (OpenPair& pair : pairs) {
      if (const Result<bool> done = advance(pair, token); !done) return done.error();
    }
  }
  Json values = {{"given", softfloat::format_name(own)},
                 {"replica", std::move(*replica)},
                 {"missing", std::move(missing)}};
  for (OpenPair& pair : pairs) {
    values["formats"][std::string(pair.row->name)] = {{"unit_roundoff", pair.unit_roundoff},
                                                      {"kl", std::move(pair.kl)},
                                                      {"kl_binary32", std::move(pair.kl_binary32)},
                                                      {"logits", std::move(pair.logits)}};
  }
  return values;
}

}  // namespace kvsim::experiments
