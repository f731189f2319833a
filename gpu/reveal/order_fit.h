// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "sim/order.h"
#include "softfloat/format.h"

namespace kvsim::gpu {

/// Orders of the grammar (sim/order.h) whose trees have exactly these additions, the simplest
/// first: at most `most`, none where the grammar has none. Each was built and compared. `input`
/// limits the matrix units to those that read it; units that compute alike stand for each other.
/// Where a simple form fits, nested ones are tried only if `nested` is set.
/// Orders that differ only in what they round (`partials=`, `running=`, the unit) have the same
/// additions: with_roundings() gives those.
[[nodiscard]] std::vector<Order> fit_orders(const AdditionTree& tree,
                                            const softfloat::Format& input, bool nested = false,
                                            std::size_t most = 12);

/// The order, and the same order with the sums of its outermost `blocks` or `split` rounded to
/// `format`: each part's, the running sum, both.
[[nodiscard]] std::vector<Order> with_roundings(const Order& order,
                                                const softfloat::Format& format);

}  // namespace kvsim::gpu
