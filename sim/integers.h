// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim {

/// ⌈a ÷ b⌉ of a ≥ 0 and b ≥ 1, where a + b − 1 can be represented.
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace kvsim
