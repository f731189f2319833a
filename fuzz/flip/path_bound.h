// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/reference.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/error_bounds.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// The largest magnitudes among the factors of a sum of products.
struct FactorMagnitudes {
  double a = 0;
  double b = 0;
};

/// A bound on the error of a sum of products in binary32, or on a matrix unit, from the sum of
/// their magnitudes: what every order allows, so not what the partial sums at hand come to.
class ProductSumBound {
 public:
  /// For sums of `terms` products of `input`, `chains` chains of the order one after another.
  /// Errors (usage): a matrix unit for which no bound is known.
  static Result<ProductSumBound> make(std::string_view order, const softfloat::Format& input,
                                      std::int64_t terms, std::int64_t chains);

  /// The bound on Σ_i c_i · |error_i| for sums i with Σ_i c_i · Σ|products of i| ≤ `absolute_sum`
  /// and Σ_i c_i ≤ `weight`; of one sum with weight 1.
  [[nodiscard]] double operator()(double absolute_sum, const FactorMagnitudes& factors,
                                  double weight = 1) const;

 private:
  ProductSumBound() = default;
  std::optional<SumBound> rounded_;  ///< where no matrix unit adds
  double relative_ = 0;              ///< of a chain on a matrix unit
  double smallest_factor_ = 0;       ///< a zero or subnormal factor is aligned as if it were this
  double floor_ = 0;                 ///< least magnitude to which terms are aligned
  double quanta_ = 0;                ///< of subnormal results
};

/// A rigorous bound on how far an attention kernel moves the difference of the two logits, for one
/// input: scores, exponentials, row sum, probabilities rounded to storage, P·V, splits, output.
/// docs/fuzzing.md derives it. It holds as long as nothing overflows.
class PathBound {
 public:
  /// Errors (usage): a kernel for which no bound is known; what check_problem() of the kernel
  /// finds.
  static Result<PathBound> make(const AttentionKernel& kernel, const AttentionProblem& problem);

  /// `outputs` [query_heads][head_dim] as the kernel computed them, `tokens` as in a case.
  [[nodiscard]] double operator()(std::span<const ExactHead> heads, std::span<const float> outputs,
                                  std::span<const float> tokens) const;

 private:
  PathBound(ProductSumBound scores, ProductSumBound values, const softfloat::Format& storage)
      : scores_(scores), values_(values), storage_(storage) {}

  [[nodiscard]] double of_head(const ExactHead& head) const;

  ProductSumBound scores_;
  ProductSumBound values_;
  RoundingUnits storage_;
  bool eager_ = false;
  bool unfused_ = false;
  double tiles_ = 1;  ///< blocks of keys that a split visits
  double splits_ = 1;
  double row_sum_ = 0;   ///< relative error of the row sum
  double log_keys_ = 0;  ///< logarithm of the number of keys, from above
  double head_dim_scale_ = 1;
};

}  // namespace kvsim::fuzz
