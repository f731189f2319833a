// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <vector>

#include "sim/order.h"

/// Sums in binary32 by the definition of an order, with the host's own additions: what walk() and
/// everything behind it is compared with. Shares no code with sim/ but the names of orders.
namespace kvsim::fuzz {

/// Whether plain_sum() knows the order: one item or two, of which the inner one takes nothing
/// inside; sequential, reverse, pairwise, halving, lanes without head and tail, blocks and split
/// without other formats.
[[nodiscard]] bool has_plain_sum(const Order& order);

/// The sum of one or more terms.
[[nodiscard]] float plain_sum(const Order& order, std::span<const float> terms);

}  // namespace kvsim::fuzz
