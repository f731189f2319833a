// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvsim {

/// A size or position, 0 or above, as what the standard library's containers take.
[[nodiscard]] constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace kvsim
