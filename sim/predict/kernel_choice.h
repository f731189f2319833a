// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>

#include "sim/attention/kernel.h"
#include "sim/linear.h"

namespace kvsim {

/// Which kernels a stack uses, by the shape of the work: what predict asks of a dispatch.
struct KernelChoice {
  /// The linear kernel for M rows, N outputs and K terms.
  std::function<const LinearKernel&(std::int64_t rows, std::int64_t outputs, std::int64_t terms)>
      linear;
  /// The attention kernel for query_len queries on kv_len keys.
  std::function<const AttentionKernel&(std::int64_t query_len, std::int64_t kv_len)> attention;
  std::int64_t multiprocessors = 1;
};

}  // namespace kvsim
