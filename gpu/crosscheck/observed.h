// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What the back end gives for a check. A norm is made of the back end's own products, mean, sums
/// and roots, in binary32, as transformers writes LlamaRMSNorm and Gemma3RMSNorm (5.24): a fused
/// operator is another one. Softmax gives binary32. Errors: of Backend::run().
[[nodiscard]] Result<Tensor> observe(Backend& backend, const Check& check,
                                     const std::vector<Tensor>& inputs);

}  // namespace kvsim::gpu
