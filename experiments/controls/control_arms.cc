// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/control_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "sim/dispatch_choice.h"

namespace kvsim::experiments {
namespace {

/// What is stored in which format: the simulator's names and libtorch's.
constexpr std::array<std::string_view, 4> format_keys{"storage", "weights", "kv", "head"};

bool is_format(std::string_view key) {
  return key.starts_with("format.") || std::ranges::find(format_keys, key) != format_keys.end();
}

/// Whether a dispatch gives this setting another value.
bool belongs_to_dispatch(std::string_view key) {
  return DispatchChoice::is_line(key) && !is_format(key);
}

void put(Arm& arm, const ArmSetting& setting) {
  std::erase_if(arm.settings, [&](const ArmSetting& own) { return own.key == setting.key; });
  arm.settings.push_back(setting);
  std::ranges::sort(arm.settings, {}, &ArmSetting::key);
}

/// Whether its kernels take their formats in a prompt's pass and in a token's.
Result<bool> can_compute(const StudyArm& arm) {
  constexpr std::int64_t rows = 2;
  const Launch launch{.prompt_tokens = rows};
  for (const PlanStep& step : {PlanStep{0, rows, 0}, PlanStep{rows, 1, rows}}) {
    if (const auto list = arm.engine->explain(step, launch); !list) return list.error();
  }
  return true;
}

constexpr std::array<std::string_view, 2> widest{"dispatch=binary64", "storage=binary64"};

}  // namespace

Result<Arm> with_settings(const Arm& arm, std::string_view settings) {
  if (settings.empty()) return arm;
  const Result<Arm> given = parse_arm(fmt::format("live:{}", settings));
  if (!given) return given.error();
  Arm changed = arm;
  const bool has_dispatch =
      std::ranges::find(given->settings, "dispatch", &ArmSetting::key) != given->settings.end();
  if (has_dispatch) {
    std::erase_if(changed.settings,
                  [](const ArmSetting& own) { return belongs_to_dispatch(own.key); });
  }
  for (const ArmSetting& setting : given->settings) put(changed, setting);
  changed.label = to_text(changed);
  return changed;
}

Arm with_constructor(Arm arm, CacheConstructor constructor, std::int64_t rows) {
  arm.constructor = constructor;
  arm.rows = rows;
  arm.label = to_text(arm);
  return arm;
}

Arm with_formats_of(const Arm& second, const Arm& first) {
  Arm result = second;
  std::erase_if(result.settings, [](const ArmSetting& own) { return is_format(own.key); });
  for (const ArmSetting& setting : first.settings) {
    if (is_format(setting.key)) put(result, setting);
  }
  result.label = to_text(result);
  return result;
}

Result<StudyArm> first_accepted(const Engine& engine, const Arm& arm,
                                std::span<const std::string_view> settings) {
  std::optional<Error> refused;
  for (const std::string_view each : settings) {
    const Result<Arm> changed = with_settings(arm, each);
    if (!changed) return changed.error();
    Result<StudyArm> prepared = prepare(engine, *changed);
    Result<bool> can_run = prepared ? can_compute(*prepared) : prepared.error();
    if (can_run) return prepared;
    if (!refused) refused = Error{ErrorKind::unavailable, can_run.error().message};
  }
  return refused.value_or(Error{ErrorKind::unavailable, "no settings"});
}

Result<StudyArm> reference_arm(const StudySetup& setup) {
  const Arm live = with_constructor(setup.on, CacheConstructor::live);
  Result<StudyArm> arm = first_accepted(*setup.engine, live, widest);
  if (arm && arm->arm.settings == live.settings) {
    return Error{ErrorKind::unavailable, "nothing is wider than what the arm computes in"};
  }
  return arm;
}

Result<double> unit_roundoff(const StudyArm& arm) {
  const auto sequence = arm.engine->open(1, {});
  if (!sequence) return sequence.error();
  const int precision =
      std::min(arm.engine->logit_format().precision, (*sequence)->state_shape().format.precision);
  return std::ldexp(1.0, -precision);
}

std::span<const TokenId> tokens_of(const StudySetup& setup, std::int64_t prompt) {
  return setup.prompts[static_cast<std::size_t>(prompt)].prompt.ids;
}

}  // namespace kvsim::experiments
