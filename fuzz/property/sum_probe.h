// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "fuzz/property/property.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "sim/sum_tree.h"

namespace kvsim::fuzz {

/// Whether an item of the order sums exactly: probes see nothing inside it.
[[nodiscard]] bool has_exact_sum(const Order& order);

/// Sums masked terms in binary32: +2^60, −2^60, and ones everywhere else, for every two terms. The
/// ones that are added before the two large terms meet are lost in one of them; so what is left
/// says how many terms lie outside the smallest subtree of the two (FPRev). Says for which two
/// terms the order leaves another number than the tree, which has neither a matrix unit nor exact
/// nodes, has there.
[[nodiscard]] Violation probe_violation(const SumTree& tree, const Order& order, Product product);

}  // namespace kvsim::fuzz
