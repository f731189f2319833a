// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string_view>

#include "gpu/backend.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// PyTorch's ATen on the CPU, under current_setting() (gpu/setting.h): every operator of
/// gpu/operators.h in binary32, bfloat16 and binary16. Attributes: `output` (the dtype argument of
/// sum, mean, softmax and log-softmax); `eps` of the norms; `causal`, `scale` and `backend` (flash,
/// math or eager: written out as transformers has it; otherwise PyTorch chooses) of sdpa. A causal
/// sdpa takes as many queries as keys, because PyTorch lets query i see keys 0 … i. Inputs are
/// contiguous and begin where the tensor's misalignment says.
///
/// Error (unavailable): this build has no libtorch, or it cannot be loaded.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_torch_cpu_backend(std::string_view argument);

/// The same on the first NVIDIA GPU, with that libtorch's libtorch_cuda. Errors (unavailable): "no
/// GPU: …"; libtorch_cuda cannot be loaded: the libtorch of scripts/torch/install lacks the
/// libraries that it needs, `pip install torch` brings them.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_torch_cuda_backend(std::string_view argument);

}  // namespace kvsim::gpu
