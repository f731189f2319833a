// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "sim/engine/columns.h"
#include "sim/linear.h"
#include "softfloat/result.h"

/// Operators that are products of matrices, on the simulator.
namespace kvsim::gpu {

/// A checked call brought to one form: out[b][i][j] = Σ_k a[b][i][k] × b[b][k][j], with b stored by
/// rows or by columns.
struct ProductShape {
  std::int64_t batches = 1;
  std::int64_t rows = 1;
  std::int64_t terms = 1;
  std::int64_t columns = 1;
  bool b_by_columns = false;  ///< b[j][k]
  /// The first input stands on the right side: gemv is computed as x · aᵀ, sum as 1 · xᵀ, so that
  /// many outputs are columns.
  bool swapped = false;
  bool plain_sum = false;  ///< the left side is 1 throughout
};

/// For linear, matmul, gemm, bmm, dot, gemv, sum and mean; the call was checked.
[[nodiscard]] ProductShape product_shape(const OperatorCall& call);

/// The call in the order that its attributes state.
[[nodiscard]] Result<Tensor> run_ordered(const OperatorCall& call,
                                         std::vector<std::int64_t> result_shape,
                                         const EngineOptions& options);

/// The call as a linear kernel computes it.
[[nodiscard]] Result<Tensor> run_linear_kernel(const LinearKernel& kernel, const OperatorCall& call,
                                               std::vector<std::int64_t> result_shape,
                                               const EngineOptions& options);

/// Attributes that run_ordered() and run_linear_kernel() take.
inline constexpr std::string_view ordered_attributes[] = {"order", "product", "accumulator",
                                                          "output"};
inline constexpr std::string_view linear_kernel_attributes[] = {"output", "multiprocessors"};

}  // namespace kvsim::gpu
