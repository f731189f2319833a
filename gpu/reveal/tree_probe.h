// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/reduction.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The sums of a call that share one tree: every row of `rows` at every column of `columns`.
struct SumClass {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;
};

/// A tree and what it cost.
struct ProbedTree {
  AdditionTree tree;
  std::int64_t calls = 0;   ///< of the operator
  std::int64_t probes = 0;  ///< sums that were looked at
};

/// The tree of additions by masked probes: one term +M, another −M, the others so small beside M
/// that what is added to M is lost. What comes back counts the terms that are added after the two
/// masks have met (Xie et al., "FPRev", arXiv:2411.00442, 2024). Here each round takes one random
/// term of every subtree that is still unknown and compares it with all others of its subtree, all
/// rounds' probes side by side in the columns (or rows) of a call.
///
/// Where the output cannot count so far, a sample of the terms is counted first and the terms
/// between two samples afterwards. Formats of 8 bits and fewer carry half of a mask in each factor.
///
/// Errors (cannot_tell): probes that fit no tree (the order depends on the data, the columns or the
/// run), sums that are no counts. `seed` decides which terms are compared, not what is found.
[[nodiscard]] Result<ProbedTree> probe_tree(Reduction& reduction, const SumClass& sums,
                                            std::uint64_t seed = 1);

}  // namespace kvsim::gpu
