// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// How an eager kernel sums: on its matrix unit and by warps, or, in the controls, one after
/// another in binary32, or exactly with one rounding to binary32.
enum class EagerSums : std::uint8_t { unit, sequential, exact };

/// What docs/attention.md, "Eager", leaves to the row.
struct EagerKernel {
  std::string_view unit;  ///< up to the formats
  EagerSums sums = EagerSums::unit;
  bool sqrt_on_both = false;        ///< √scale on q and k instead of scale on q·k
  bool softmax_in_storage = false;  ///< every step of the softmax rounded to storage
};

/// The whole layer, query by query. No lse.
[[nodiscard]] Result eager(const EagerKernel& kernel, const Problem& problem);

/// The row sum of eager kernels on GPUs: lanes(32,4,join=butterfly), every addition rounded to
/// `format`.
[[nodiscard]] float warp_sum(const softfloat::Format& format, const std::vector<float>& terms);

}  // namespace kvsim::plain
