// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "softfloat/result.h"

/// Under which environment libtorch runs. Its libraries read the environment once, when they are
/// loaded, so a setting is applied before the first torch back end is made.
namespace kvsim::gpu {

/// One variable of the environment.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view value;
};

/// One row.
struct SettingRow {
  std::string_view name;
  std::string_view description;  ///< one line without a full stop
  std::span<const EnvironmentVariable> variables;
  bool onednn = true;  ///< whether PyTorch may call oneDNN
};

/// "installed": the environment as it is. "pinned": MKL and ATen take the CPU for one with AVX2,
/// and oneDNN is off; meant to give the same bits on every AVX2 CPU.
[[nodiscard]] std::span<const SettingRow> setting_rows();

/// The setting that holds; "installed" until another is applied.
[[nodiscard]] const SettingRow& current_setting();

/// Sets the variables of the named setting. Not while other threads read the environment. Errors
/// (usage): no setting of that name; libtorch was loaded under another one.
[[nodiscard]] Result<bool> apply_setting(std::string_view name);

/// From now on apply_setting() accepts only what holds: libtorch is loaded.
void fix_setting();

}  // namespace kvsim::gpu
