// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <utility>

#include "fuzz/flip/bound_plan.h"
#include "fuzz/flip/reference.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// A rigorous bound on how far an attention kernel moves the difference of the two logits, for one
/// input, from what the kernel's own partial sums of this input come to: scores, exponentials, row
/// sum, probabilities rounded to storage, P·V, splits, output. docs/fuzzing.md derives it. It holds
/// as long as nothing overflows.
class PathBound {
 public:
  /// Errors (usage): a kernel for which no bound is known; what check_problem() of the kernel
  /// finds.
  static Result<PathBound> make(const AttentionKernel& kernel, const AttentionProblem& problem);

  /// `outputs` [query_heads][head_dim] as the kernel computed them, `tokens` as in a case.
  [[nodiscard]] double operator()(const ExactAttentionCase& exact, std::span<const float> outputs,
                                  std::span<const float> tokens) const;

 private:
  PathBound(BoundPlan plan, const softfloat::Format& storage)
      : plan_(std::move(plan)), input_(storage) {}

  BoundPlan plan_;
  RoundingUnits input_;  ///< of q, k and v
};

}  // namespace kvsim::fuzz
