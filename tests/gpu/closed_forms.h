// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"

/// Calls of every operator with what they are in exact arithmetic, computed in binary64 by plain
/// loops, and how far a correct back end may be from it whatever its order of additions.
namespace kvsim::gpu::test {

struct Case {
  OperatorCall call;
  std::vector<double> expected;
  std::vector<double> bound;  ///< of |result − expected|, element by element
};

/// One product of seeded normal numbers: linear, matmul, gemm, bmm (3 batches), dot (m and n are
/// 1) or gemv (n is 1); linear takes a bias on request.
/// Bound: (k + 2) u Σ|a b| with u = 2^−24 (Higham, Accuracy and Stability of Numerical Algorithms,
/// 2nd ed., section 3.1: γ of any order), and half an ulp of the format.
[[nodiscard]] Case product_case(const std::string& operation, std::int64_t m, std::int64_t k,
                                std::int64_t n,
                                const softfloat::Format& format = softfloat::binary32,
                                bool bias = false);

/// Products of several sizes, odd and even.
[[nodiscard]] std::vector<Case> product_cases(
    const softfloat::Format& format = softfloat::binary32);

/// sum, mean, softmax, log-softmax, rms-norm and layer-norm of rows, with and without weights.
[[nodiscard]] std::vector<Case> row_cases(const softfloat::Format& format = softfloat::binary32);

/// silu, gelu, gelu-tanh, exp, rsqrt, add and mul.
[[nodiscard]] std::vector<Case> element_cases(
    const softfloat::Format& format = softfloat::binary32);

/// sdpa: grouped heads, one query and many, causal and not.
[[nodiscard]] std::vector<Case> attention_cases(
    const softfloat::Format& format = softfloat::binary32);

/// Expects the result's shape and numbers; a failure names the first wrong element only.
void expect_near(const Case& expected, const Tensor& result);

}  // namespace kvsim::gpu::test
