// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/reveal.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Numbers of terms that are added in one order.
struct TermClass {
  SizeClass terms;
  /// Of the smallest of them; its order (SumModel::order) is one that holds for all.
  Revelation found;
};

/// Which numbers of terms to look at.
struct TermSweep {
  std::int64_t first = 1;
  std::int64_t last = 1;
  std::int64_t every = 32;  ///< up to that many are all revealed
  std::int64_t most = 128;  ///< more are never revealed: then gaps are left between classes
};

/// The numbers of terms of a sweep grouped by order. Sums of different numbers of terms share no
/// tree: one class are neighbours whose trees one order of the grammar has. Each is revealed and
/// checked; of long ranges some are, and boundaries found by bisection. Errors: as reveal().
[[nodiscard]] Result<std::vector<TermClass>> sweep_terms(Backend& backend, ReductionShape shape,
                                                         const RevealOptions& options,
                                                         const TermSweep& range);

}  // namespace kvsim::gpu
