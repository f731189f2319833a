// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/engine/columns.h"
#include "sim/sum.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// RMS and layer normalisation. All arithmetic is binary32, rounded after each operation; tensors
/// are stored in a format of at most that precision.
namespace kvsim {

enum class NormKind : std::uint8_t {
  rms,    ///< y = x · r, r = 1/√(Σ x²/n + ε)
  layer,  ///< y = (x − μ) · r, μ = Σ x/n, r = 1/√(Σ (x − μ)²/n + ε)
};

/// How 1/√v is computed.
enum class RootRule : std::uint8_t {
  one_over_root,  ///< 1 ÷ √v: two roundings
  one_rounding,   ///< correctly rounded
};

/// Where the weight multiplies.
enum class WeightRule : std::uint8_t {
  after_rounding,   ///< y is rounded to storage, then y · w is: Llama in transformers
  before_rounding,  ///< y · w is rounded to storage
  plus_one,         ///< y · (1 + w), with 1 + w rounded to binary32, is rounded to storage: Gemma
};

/// One row.
struct NormKernel {
  std::string_view name = {};    ///< "torch-cpu-rms"
  std::string_view device = {};  ///< device class: "CPU", "GPU", "any"
  NormKind kind = NormKind::rms;
  std::string_view order = {};         ///< of every sum: text of sim/order.h
  Product product = Product::rounded;  ///< how squares enter their sum
  RootRule root = RootRule::one_over_root;
  WeightRule weight = WeightRule::after_rounding;
  std::string_view source = {};  ///< repository and file, or document
  std::string_view date = {};    ///< of the source: a version, a month or a year
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const NormKernel> norm_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const NormKernel* find_norm_kernel(std::string_view name);

/// Rows to normalise, each on its own: hidden states, or heads (q and k norm).
struct NormProblem {
  softfloat::Format storage = {};  ///< of x, weight, bias and the result; its numbers are floats
  std::int64_t rows = 0;
  std::int64_t columns = 0;       ///< n
  const float* x = nullptr;       ///< [rows][columns]
  const float* weight = nullptr;  ///< [columns]; null: 1, without a multiplication
  const float* bias = nullptr;    ///< [columns], added before the last rounding; null: none
  double epsilon = 1e-6;          ///< rounded to binary32 first
};

/// out[rows][columns] = the normalised rows, numbers of `storage`; `out` may be `x`. The sums are
/// divided by n (one rounding). Errors name a size, a format, an order or a level that cannot be.
Result<bool> apply_norm(const NormKernel& kernel, const NormProblem& problem, float* out,
                        const EngineOptions& options = {});

}  // namespace kvsim
