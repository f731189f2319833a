// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/reveal/dependence.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Which sizes to look at.
struct SizeSweep {
  std::int64_t first = 1;
  std::int64_t last = 1;
  std::int64_t every = 32;  ///< up to that many are all looked at
  std::int64_t most = 128;  ///< more are never looked at: then gaps are left between classes
};

/// Looks at one size, as often as it is asked to.
using LookAtSize = std::function<Result<bool>(std::int64_t size)>;
/// The classes of the sizes that were looked at, the smallest first.
using SizeClasses = std::function<std::vector<SizeClass>()>;

/// Looks at every size of a short range; of a long one at some, close together at the small end,
/// where kernels change, and then half way between neighbouring classes until no size is left
/// between them or `most` were looked at. Errors: those of `look`.
[[nodiscard]] Result<bool> look_at_sizes(const SizeSweep& range, const LookAtSize& look,
                                         const SizeClasses& classes);

}  // namespace kvsim::gpu
