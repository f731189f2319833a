// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvsim::fuzz {

/// What a search looks for, and what a case claims. objective.h says what each maximises.
enum class Target : std::uint8_t {
  flip,        ///< the paths choose different tokens, far from a tie
  divergence,  ///< the paths' differences of the logits are far apart
  kl,          ///< the paths' distributions over the two tokens are far apart
  bound,       ///< a path's error comes near its bound
  tie,         ///< a path computes equal logits where the exact ones are far apart
  nan,         ///< a path computes no finite number where the exact result is one
};
inline constexpr std::array<std::string_view, 6> target_names{"flip",  "divergence", "kl",
                                                              "bound", "tie",        "nan"};

[[nodiscard]] constexpr std::string_view to_string(Target target) {
  return target_names[static_cast<std::size_t>(target)];
}

/// The target of that name.
[[nodiscard]] constexpr std::optional<Target> find_target(std::string_view name) {
  const auto* const found = std::ranges::find(target_names, name);
  if (found == target_names.end()) return std::nullopt;
  return static_cast<Target>(found - target_names.begin());
}

}  // namespace kvsim::fuzz
