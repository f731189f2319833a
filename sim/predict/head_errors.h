// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Grouped-query attention: rounding errors of the query heads that read one K/V head.
namespace kvsim {

/// Errors of every query head over the same elements, row-major [heads][elements]. Heads
/// g·group … (g + 1)·group − 1 read K/V head g.
struct HeadErrors {
  std::int64_t heads = 0;  ///< a multiple of group
  std::int64_t group = 1;  ///< R
  std::int64_t elements = 0;
  std::vector<double> values;

  [[nodiscard]] std::span<const double> head(std::int64_t h) const {
    return std::span(values).subspan(static_cast<std::size_t>(h * elements),
                                     static_cast<std::size_t>(elements));
  }
};

/// Mean over all pairs of heads of one group, and over the groups, of Pearson's correlation of
/// their errors. A pair of which one side has no variance counts as 0; 0 for groups of one.
[[nodiscard]] double mean_correlation(const HeadErrors& errors);

/// √(Σ_groups ‖Σ_heads e_h‖² ÷ Σ_h ‖e_h‖²): how the plain sum over the heads of a group grows
/// beyond the errors themselves. 1 for independent errors, √R for equal ones; 1 without errors.
[[nodiscard]] double sum_over_heads_gain(const HeadErrors& errors);

/// √(1 + (R − 1)ρ̄), 0 where that is negative.
[[nodiscard]] double amplification(std::int64_t group, double mean_correlation);

/// ‖W e‖ ÷ ‖e‖ over all positions for the errors seen as vectors over (head, channel), as an output
/// projection reads them, and a seeded W [outputs][heads · head_dim] of independent normal numbers
/// of variance 1 ÷ (heads · head_dim). `elements` is positions · head_dim. Expect
/// √(outputs ÷ (heads · head_dim)) for any errors. 0 without errors.
[[nodiscard]] double projection_gain(const HeadErrors& errors, std::int64_t head_dim,
                                     std::int64_t outputs, std::uint64_t seed);

}  // namespace kvsim
