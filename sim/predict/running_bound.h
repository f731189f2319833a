// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <span>

#include "sim/sum_tree.h"
#include "softfloat/format.h"

namespace kvsim {

/// A bound on |computed − exact| of one sum of products in the order that the tree describes, from
/// the partial sums of these very products: u · |rounded result| for every rounding, and for a
/// block of a truncating matrix unit what it cuts of its terms and rounds of its result
/// (sim/units/unit_errors.h), and of the bits of its operands. a and b are the exact factors,
/// numbers of `input`. Sums in `accumulator`, ties to even; products may be rounded first. Rigorous
/// as long as nothing overflows: partial sums are taken from above. Nothing where the tree has a
/// matrix unit with block scales, or one that flushes subnormals (FTZ-AddMul). Sources: Higham,
/// "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.3; MMA-Sim v2
/// (arXiv:2511.10909), algorithms 7, 10 and 11.
[[nodiscard]] std::optional<double> running_bound(const SumTree& tree,
                                                  const softfloat::Format& input,
                                                  const softfloat::Format& accumulator,
                                                  std::span<const double> a,
                                                  std::span<const double> b);

}  // namespace kvsim
