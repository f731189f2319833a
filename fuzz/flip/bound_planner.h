// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>

#include "fuzz/flip/bound_plan.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"

/// How plan_bound() comes to a plan, family by family of kernels.
namespace kvsim::fuzz {

/// That a kernel has no bound, and why.
[[nodiscard]] Error no_bound_for(std::string_view kernel, std::string_view why);

/// n roundings of relative error `roundoff`: γ_n.
[[nodiscard]] double roundings(double n, double roundoff = binary32_roundoff);

/// The errors of rounding binary32 numbers to a format.
[[nodiscard]] RoundingUnits rounded_to(RoundingUnits units, const softfloat::Format& format);

[[nodiscard]] constexpr double count(std::int64_t n) { return static_cast<double>(n); }
[[nodiscard]] constexpr double count_of(std::size_t n) { return static_cast<double>(n); }

/// Fills a plan in, step by step of the kernel's family.
class Planner {
 public:
  /// All must outlive this.
  Planner(const AttentionKernel& kernel, const AttentionProblem& problem, const StorageSums& sums)
      : kernel_(kernel),
        problem_(problem),
        shape_(problem.shape),
        sums_(sums),
        storage_(problem.storage) {
    plan_.stored = rounded_to(storage_, problem.storage);
    const softfloat::Format output = output_format(kernel, problem.storage);
    if (output != softfloat::binary32) plan_.output = RoundingUnits(output);
  }

  Result<BoundPlan> run();

 private:
  Result<bool> take_sums(std::string_view scores, std::string_view values);
  [[nodiscard]] LinearShape linear_shape(std::int64_t rows, std::int64_t outputs,
                                         std::int64_t terms) const;
  /// Softmax over all scores in memory, then one product with V.
  Result<bool> eager(const EagerRule& rule);
  Result<bool> eager_by_kernels(const EagerRule& rule);
  /// The keys of each split that has any, and the columns of a block.
  void cut_into_splits();
  Result<bool> tiles(const TileRule& rule);
  /// Logarithms of sums err by what the maximum times scale, the logarithm and their sum do;
  /// weights by their differences.
  void merge_by(SplitMerge merge);
  /// q is scaled in binary16, and outputs are too.
  void operands_in_half();
  Result<bool> paged();
  Result<bool> torch_cpu(const TorchCpuRule& rule);
  Result<bool> llama_cpu();

  const AttentionKernel& kernel_;
  const AttentionProblem& problem_;
  const AttentionShape& shape_;
  const StorageSums& sums_;
  RoundingUnits storage_;
  BoundPlan plan_;
  bool known_splits_ = true;  ///< every head of the group has the same splits
};

}  // namespace kvsim::fuzz
