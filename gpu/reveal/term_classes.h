// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/reveal.h"
#include "gpu/reveal/size_search.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Numbers of terms that are added in one order.
struct TermClass {
  SizeClass terms;
  /// Of the smallest of them; its order (SumModel::order) is one that holds for all.
  Revelation found;
};

/// The numbers of terms of a sweep grouped by order. Sums of different numbers of terms share no
/// tree: one class are neighbours whose trees one order of the grammar has. Each is revealed and
/// checked; of long ranges some are, and boundaries found by bisection. Errors: as reveal().
[[nodiscard]] Result<std::vector<TermClass>> sweep_terms(Backend& backend, ReductionShape shape,
                                                         const RevealOptions& options,
                                                         const SizeSweep& range);

}  // namespace kvsim::gpu
