// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// PyTorch's flash attention on a CPU with AVX-512, one thread.
[[nodiscard]] Result torch_cpu(const Problem& problem);

/// The same held to AVX2 (MKL_CBWR=AVX2, ATEN_CPU_CAPABILITY=avx2).
[[nodiscard]] Result torch_cpu_avx2(const Problem& problem);

/// Attention written out, as transformers does, in that setting and with oneDNN disabled. No lse.
[[nodiscard]] Result torch_cpu_avx2_eager(const Problem& problem);

/// A fused chain over blocks of 192 terms (two halves and a rest where 192 < n < 384), block after
/// block added to `start`, or to each other where `start` is null.
[[nodiscard]] float blocked_dot(std::span<const float> a, std::span<const float> b,
                                const float* start);

}  // namespace kvsim::plain
