// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/study.h"
#include "softfloat/result.h"

/// What grows with the number of keys, and what does not: the errors of one attention query of
/// head_dim 128 in binary16, rounding by rounding.
namespace kvsim::experiments {

/// Something that rounds, compared with attention that does not.
struct SweepColumn {
  std::string_view key;
  std::string_view heading;
  std::string_view meaning;
};

/// Of attention: relative L2 of the output. Of sums: mean relative error of 128 sums of
/// numbers between 0 and 1.
[[nodiscard]] std::span<const SweepColumn> attention_columns();
[[nodiscard]] std::span<const SweepColumn> sum_columns_of_sweep();
/// Keys, or terms of a sum: 16, 32, … 2048.
[[nodiscard]] std::span<const std::int64_t> sweep_lengths();

/// The errors of one draw: for each column's key a list over the lengths. Errors of the kernels.
[[nodiscard]] Result<Json> sweep_errors(std::uint64_t draw);

/// Adds two tables, and result["lengths"]: by column the mean error at each length and the exponent
/// of its growth with an interval over the draws.
[[nodiscard]] Result<bool> summarize_sweep(std::span<const Json> draws, StudySummary& summary);

}  // namespace kvsim::experiments
