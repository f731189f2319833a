// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// Attention written out, as transformers does, on a CPU with AVX-512 and AVX512-BF16, one thread.
/// No lse.
[[nodiscard]] Result torch_cpu_eager(const Problem& problem);

/// The same held to AVX2 and with oneDNN disabled.
[[nodiscard]] Result torch_cpu_avx2_eager(const Problem& problem);

}  // namespace kvsim::plain
