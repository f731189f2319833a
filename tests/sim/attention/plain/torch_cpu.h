// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "tests/sim/attention/plain/common.h"
#include "tests/sim/linear_oracle.h"

namespace kvsim::plain {

/// PyTorch's flash attention on a CPU with AVX-512, one thread.
[[nodiscard]] Result torch_cpu(const Problem& problem);

/// The same held to AVX2 (MKL_CBWR=AVX2, ATEN_CPU_CAPABILITY=avx2).
[[nodiscard]] Result torch_cpu_avx2(const Problem& problem);

/// A fused chain over blocks of 192 terms (two halves and a rest where 192 < n < 384), block after
/// block added to `start`, or to each other where `start` is null.
[[nodiscard]] float blocked_dot(std::span<const float> a, std::span<const float> b,
                                const float* start);

/// Products rounded, then added one after the other to `start`.
[[nodiscard]] float serial_dot(std::span<const float> a, std::span<const float> b, float start);

/// Where an output stands: in a product of so many rows and columns.
struct Place {
  std::int64_t rows = 1;
  std::int64_t row = 0;
  std::int64_t columns = 1;
  std::int64_t column = 0;
};

/// The operands of that output, for the plain linear layers.
[[nodiscard]] test::OneOutput one_output(std::span<const float> a, std::span<const float> b,
                                         const Place& at);

}  // namespace kvsim::plain
