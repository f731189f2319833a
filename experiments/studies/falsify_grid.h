// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiments/study.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Storage × operand × accumulator × output: one attention query and 256 logits behind it, every
/// cell under one summation tree, against binary64 without any rounding.
namespace kvsim::experiments {

/// Where a computation rounds.
struct GridCell {
  softfloat::Format storage;      ///< of q, k, v and weights
  softfloat::Format operand;      ///< of both factors of every product; also of probabilities
  softfloat::Format accumulator;  ///< of sums; softmax is in binary32, or in binary64 with those
  softfloat::Format output;       ///< of what attention and the logits store

  friend bool operator==(const GridCell&, const GridCell&) = default;
};

/// "binary16/tf32/binary32/binary16".
[[nodiscard]] std::string to_text(const GridCell& cell);
/// Every cell.
[[nodiscard]] std::span<const GridCell> grid_cells();

/// Of one draw and cell.
struct GridErrors {
  double attention = 0;  ///< relative L2
  double logits = 0;     ///< relative L2
  double kl = 0;         ///< nats, binary64
};

/// The errors of the draw of that number in the order of the cells, under a cell's text: attention,
/// logits, kl. Errors of divergence().
[[nodiscard]] Result<Json> grid_errors(std::uint64_t number);

/// Adds a table, and result["grid"]: medians by cell, the exponents of error over unit roundoff and
/// of KL over error, and how far the single roundings add up to the whole.
[[nodiscard]] Result<bool> summarize_grid(std::span<const Json> draws, StudySummary& summary);

}  // namespace kvsim::experiments
