// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/sum_tree.h"
#include "softfloat/result.h"

namespace kvsim {

/// The tree in which the kernel adds p_j · v_j over the keys j for one output element of the first
/// query head: SumTree with keys as terms. What multiplies a partial sum on its way (rescaling,
/// weights of splits, the division by the row sum) is no addition and does not show. Blocks that
/// the query does not see are left out where the kernel passes over them. The numbers q, k and v of
/// the problem are not read.
///
/// Errors as in run_attention(), and for a query that is not there.
[[nodiscard]] Result<SumTree> value_tree(const AttentionKernel& kernel,
                                         const AttentionProblem& problem, std::int64_t query = 0);

}  // namespace kvsim
