// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/probe/unit_under_test.h"

namespace kvsim::gpu {

/// Rows of operands that depend on the seed and the shape alone. Of four rows in turn: all codes
/// alike likely, so that NaN, infinities and subnormal numbers are among them; exponents within 8
/// of each other; the same with half of the products the negated others, so that only rounding is
/// left; powers of two with many zeros, whose sums are ties or just miss them.
[[nodiscard]] std::vector<ProbeRow> random_rows(const UnitShape& shape, std::size_t count,
                                                std::uint64_t seed);

}  // namespace kvsim::gpu
