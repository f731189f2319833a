// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/order.h"
#include "softfloat/format.h"

namespace kvsim::engine {

/// What one step of a Program does to its slot. A slot holds one partial sum of each lane.
enum class StepKind : std::uint8_t {
  zero,   ///< slot = +0
  start,  ///< slot = term `first`, then the remaining terms of the run are added to it
  terms,  ///< the terms of the run are added to the slot one by one
  join,   ///< slot = slot + slot `other`
  exact,  ///< slot = the exact sum of the terms positions[first] … (`count` of them), rounded once;
          ///< other = 1: +0 is one more term
  unit,   ///< slot = what the program's matrix unit makes of a chain of instructions from +0: the
          ///< run's terms, or with other = 1 the terms positions[first] … (`count` of them)
  round_to,  ///< slot = slot rounded to formats[other]
};

/// One step. A run is the terms first, first + stride, …, `count` of them (≥ 1).
struct Step {
  StepKind kind = StepKind::zero;
  std::int32_t slot = 0;
  std::int32_t other = 0;
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 0;
};

/// An Order over n terms, written down once and then executed for every block of lanes: the calls
/// of walk(), with consecutive additions of evenly spaced terms to one partial sum folded into
/// runs. `sequential` is one step, `lanes(W,U)` about 2 × W × U steps; only orders that pair single
/// terms
/// (`pairwise`, `halving`) need a number of steps that grows with n, at most two for each pair.
struct Program {
  std::vector<Step> steps;
  std::int32_t slots = 1;               ///< partial sums that are alive at the same time, at most
  std::int32_t result = 0;              ///< the slot that holds the sum after the last step
  std::int64_t roundings = 0;           ///< rounded results per lane, at most
  std::vector<std::int64_t> positions;  ///< of the terms of exact sums, and of units below a perm
  std::vector<softfloat::Format> formats;  ///< of round_to steps, each once
  std::string unit;  ///< canonical text of the matrix unit; empty without `unit` steps
};

/// The program of `order` over n terms. Requires check_length(order, n).
[[nodiscard]] Program compile_order(const Order& order, std::int64_t n);

}  // namespace kvsim::engine
