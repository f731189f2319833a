// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "softfloat/format.h"

/// The formats in which falsify runs a model's two arms again.
namespace kvsim::experiments {

struct FormatRow {
  std::string_view name;
  std::optional<softfloat::Format> format = {};  ///< none: the one at hand
  /// Settings of an arm, "KEY=VALUE,…"; the first that the engine takes counts.
  std::array<std::string_view, 2> settings = {};
};

/// The settings at hand first.
[[nodiscard]] std::span<const FormatRow> format_rows();

}  // namespace kvsim::experiments
