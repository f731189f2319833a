// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string_view>

#include "gpu/backend.h"
#include "gpu/cuda_device.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// cuBLAS through cublasGemmEx: linear (without a bias), gemm and matmul in binary32, bfloat16 and
/// binary16, accumulated in binary32. Attributes: `output` (binary32, or the format of the inputs)
/// and `tf32` (0 or 1: binary32 through TensorFloat-32).
///
/// Errors (unavailable): "no GPU: …", a library that is missing.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_cublas_backend(std::string_view argument);

/// cuBLASLt, algorithm by algorithm: the same operators and attributes, and `algorithm` (the i-th
/// that cublasLtMatmulAlgoGetHeuristic names, from 0) and `workspace` (bytes, at most 2^28; 0).
/// Errors as above.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_cublaslt_backend(std::string_view argument);

/// Both with libraries of the caller's choice.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_cublas_backend(const CudaLibraries& libraries,
                                                                   bool light);

}  // namespace kvsim::gpu
