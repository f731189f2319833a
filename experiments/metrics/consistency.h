// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "experiments/statistics/proportions.h"
#include "softfloat/result.h"

/// Whether a prompt is answered rightly always, sometimes or never over several seeds.
namespace kvsim::metrics {

/// Over all runs of one prompt by one arm.
enum class Consistency : std::uint8_t { always, sometimes, never };
inline constexpr std::size_t consistencies = 3;

/// "always", "sometimes", "never".
[[nodiscard]] std::string_view to_text(Consistency consistency);

/// successes: right answers; trials: runs. An arm that does not depend on the seed has one run,
/// which makes it always or never. Errors (usage): counts that are none; (cannot_tell) no runs.
[[nodiscard]] Result<Consistency> consistency_of(const statistics::Count& runs);

/// Prompts by what both arms make of them.
struct ConsistencyTable {
  /// [of the first arm][of the second], in the order of Consistency
  std::array<std::array<std::int64_t, consistencies>, consistencies> prompts = {};

  /// Prompts of one row or column.
  [[nodiscard]] std::int64_t of_first(Consistency consistency) const;
  [[nodiscard]] std::int64_t of_second(Consistency consistency) const;
  /// Prompts outside the diagonal.
  [[nodiscard]] std::int64_t changed() const;
};

/// Counts prompts; both lists have one entry a prompt. Errors: those of consistency_of(), with the
/// prompt; (usage) lists of unequal length.
[[nodiscard]] Result<ConsistencyTable> compare_consistency(
    std::span<const statistics::Count> first, std::span<const statistics::Count> second);

}  // namespace kvsim::metrics
