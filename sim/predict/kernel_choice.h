// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "sim/attention/kernel.h"
#include "sim/dispatch.h"
#include "sim/linear.h"
#include "softfloat/result.h"

namespace kvsim {

/// Which kernels a stack uses, by the shape of the work: what predict asks of a dispatch.
struct KernelChoice {
  /// The linear kernel for so many rows.
  std::function<const LinearKernel&(std::int64_t rows)> linear;
  /// The attention kernel for so many queries.
  std::function<const AttentionKernel&(std::int64_t queries)> attention;
  std::int64_t multiprocessors = 1;
  std::int64_t attention_splits = 0;  ///< forced number of splits; 0: the kernel's rule
};

/// The choices of a dispatch whose arithmetic is that of kernels. `on` and `off` name the
/// attention kernels for one query and for more: one of attention_kernels(), or "decode" or
/// "prefill" for the one that the dispatch has for that. Errors (usage):
/// an unknown name, with the accepted ones; a dispatch without kernels.
[[nodiscard]] Result<KernelChoice> choose_kernels(const Dispatch& dispatch, std::string_view on,
                                                  std::string_view off);

}  // namespace kvsim
