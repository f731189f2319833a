// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// What docs/attention.md, "Eager", leaves to the row.
struct EagerKernel {
  std::string_view unit;            ///< up to the formats
  bool sqrt_on_both = false;        ///< √scale on q and k instead of scale on q·k
  bool softmax_in_storage = false;  ///< every step of the softmax rounded to storage
  bool multiply = false;            ///< p = e · (1/l) instead of e / l
  bool exp_correctly_rounded = true;
};

/// The whole layer, query by query. No lse.
[[nodiscard]] Result eager(const EagerKernel& kernel, const Problem& problem);

/// The row sum of eager kernels on GPUs: lanes(32,4,join=butterfly), every addition rounded to
/// `format`.
[[nodiscard]] float warp_sum(const softfloat::Format& format, const std::vector<float>& terms);

}  // namespace kvsim::plain
