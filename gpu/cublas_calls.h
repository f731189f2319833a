// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/cuda_device.h"
#include "softfloat/result.h"

/// Products of matrices by NVIDIA's two libraries, on memory of the device.
namespace kvsim::gpu {

/// What computes, and how.
struct CublasProduct {
  int rows = 0;               ///< M of out[i][j] = Σ_k a[i][k] b[k][j], all matrices stored by rows
  int terms = 0;              ///< K
  int columns = 0;            ///< N
  bool b_by_columns = false;  ///< b[j][k]
  int input_type = 0;         ///< cudaDataType
  int output_type = 0;
  bool tf32 = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  int algorithm = 0;          ///< cuBLASLt: which one
  std::size_t workspace = 0;  ///< cuBLASLt: bytes
};

namespace cuda_types {  // cudaDataType of library_types.h, CUDA 13.0
inline constexpr int binary32 = 0;
inline constexpr int binary16 = 2;
inline constexpr int bfloat16 = 14;
}  // namespace cuda_types

/// One of the two libraries.
class CublasCalls {
 public:
  CublasCalls() = default;
  CublasCalls(const CublasCalls&) = delete;
  CublasCalls& operator=(const CublasCalls&) = delete;
  virtual ~CublasCalls() = default;
  [[nodiscard]] virtual std::string version() const = 0;
  /// Starts the product. Error (unavailable): the library has no such product or algorithm; (file):
  /// it fails.
  [[nodiscard]] virtual Result<bool> multiply(const CudaRuntime& runtime,
                                              const CublasProduct& product) = 0;
};

/// Errors (unavailable): no such library, or it does not start.
[[nodiscard]] Result<std::unique_ptr<CublasCalls>> load_cublas(const CudaLibraries& libraries);
[[nodiscard]] Result<std::unique_ptr<CublasCalls>> load_cublaslt(const CudaLibraries& libraries);

}  // namespace kvsim::gpu
