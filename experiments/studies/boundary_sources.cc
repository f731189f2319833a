// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_sources.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvsim::experiments {

std::span<const ErrorSource> error_sources() {
  static constexpr std::array rows{
      ErrorSource{"cache", "", "the cache: the setup's second arm"},
      ErrorSource{"prompt", "all-token-wise", "the prompt token by token"},
      ErrorSource{"kv8", "live:kv=float8_e4m3fn", "keys and values stored in 8 bits"},
      ErrorSource{"storage", "live:storage=binary16", "everything stored in binary16"},
      ErrorSource{"head", "live:head=binary32",
                  "logits that are not rounded to the storage format"},
  };
  return rows;
}

Result<std::optional<Arm>> arm_of(const ErrorSource& source, const StudySetup& setup) {
  if (source.arm.empty()) return std::optional(setup.off);
  Result<Arm> parsed = parse_arm(source.arm);
  if (!parsed) return parsed.error();
  Arm arm = setup.on;
  if (parsed->constructor != CacheConstructor::live) arm.constructor = parsed->constructor;
  for (ArmSetting& own : parsed->settings) {
    const auto found = std::ranges::find(arm.settings, own.key, &ArmSetting::key);
    if (found != arm.settings.end()) {
      found->value = std::move(own.value);
    } else {
      arm.settings.push_back(std::move(own));
    }
  }
  std::ranges::sort(arm.settings, {}, &ArmSetting::key);
  const std::string text = to_text(arm);
  arm.label = text;
  if (text == to_text(setup.on) || text == to_text(setup.off)) return std::optional<Arm>();
  return std::optional(std::move(arm));
}

Result<bool> has_arm(const StudySetup& setup, const Arm& arm) {
  const auto lacks = [](const Error& error) {
    return error.kind == ErrorKind::usage || error.kind == ErrorKind::unavailable;
  };
  const Result<StudyArm> prepared = prepare(*setup.engine, arm);
  if (!prepared) return lacks(prepared.error()) ? Result<bool>(false) : prepared.error();
  const auto opened = prepared->open(setup.prompts.front().prompt.ids, setup.new_tokens);
  if (!opened) return lacks(opened.error()) ? Result<bool>(false) : opened.error();
  return true;
}

}  // namespace kvsim::experiments
