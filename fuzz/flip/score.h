// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/output_head.h"
#include "fuzz/flip/path_bound.h"
#include "fuzz/flip/reference.h"
#include "sim/attention/observer.h"
#include "sim/attention/run.h"
#include "sim/sum_tree.h"
#include "softfloat/result.h"

/// How far from a tie two ways of computing choose different tokens.
namespace kvsim::fuzz {

/// What one path makes of a case.
struct PathScore {
  double difference = 0;  ///< the first token's computed logit less the second's; its sign is exact
  double bound = 0;       ///< |difference − exact difference| is at most that

  /// The token with the larger logit, 0 or 1; of equal logits the one with the lower index.
  [[nodiscard]] int token() const { return difference >= 0 ? 0 : 1; }
};

/// Both paths beside the exact result, in logits.
struct FlipScore {
  double exact = 0;            ///< the first token's exact logit less the second's
  double reference_error = 0;  ///< |exact − what is exact| is at most that
  std::array<PathScore, 2> paths;
  /// Rises towards overflow, of equal shapes: the sum of the bounds, which partial sums make up, or
  /// of attention the largest score, or 0.
  double growth = 0;

  /// The exact distance between the two logits.
  [[nodiscard]] double margin() const;
  /// How far apart the two paths' differences are.
  [[nodiscard]] double apart() const { return std::abs(paths[0].difference - paths[1].difference); }
  /// The sum of both paths' bounds.
  [[nodiscard]] double bound() const { return paths[0].bound + paths[1].bound; }
  /// margin ÷ bound.
  [[nodiscard]] double ratio() const { return margin() / bound(); }
  /// Every number is finite: nothing overflowed.
  [[nodiscard]] bool is_finite() const;
  /// The paths choose different tokens, and the margin is larger than the reference may be off.
  [[nodiscard]] bool flips() const;
};

/// Scores cases of one shape. Thread-safe: scoring changes nothing.
class FlipScorer {
 public:
  /// Errors (usage): check_shape(); what an order, a kernel or its bound cannot do.
  static Result<FlipScorer> make(const CaseShape& shape);

  [[nodiscard]] const CaseShape& shape() const { return shape_; }

  /// The score of a case of this shape.
  [[nodiscard]] FlipScore score(const FlipCase& flip_case) const;

  /// The outputs of the attention kernel of a path, [query_heads][head_dim]. The level changes time
  /// only; an observer sees the steps.
  [[nodiscard]] std::vector<float> outputs(const FlipCase& flip_case, std::size_t path,
                                           SimdLevel level = best_simd_level(),
                                           AttentionObserver* observer = nullptr) const;

  /// The logits that a path makes of its outputs where it has a kernel for that; nothing where they
  /// are exact sums.
  [[nodiscard]] std::optional<std::array<double, 2>> logits(
      std::span<const float> outputs, const FlipCase& flip_case, std::size_t path,
      SimdLevel level = best_simd_level()) const;

  /// The first token's logit less the second's, of such outputs; NaN where there are none.
  [[nodiscard]] double difference(std::span<const float> outputs, const FlipCase& flip_case,
                                  std::size_t path) const;

  /// Parts into which the path cuts its keys; of a sum those of its nested splits, multiplied.
  [[nodiscard]] std::int64_t splits(std::size_t path) const;

  /// "a100-fa2, 1 query, 4 splits" or the order.
  [[nodiscard]] std::string path_name(std::size_t path) const;

 private:
  explicit FlipScorer(CaseShape shape) : shape_(std::move(shape)) {}

  [[nodiscard]] FlipScore score_sum(const FlipCase& flip_case) const;
  [[nodiscard]] FlipScore score_attention(const FlipCase& flip_case) const;
  [[nodiscard]] AttentionProblem problem(const FlipCase& flip_case, std::size_t path) const;

  CaseShape shape_;
  std::array<std::optional<SumTree>, 2> trees_;  ///< of orders with a matrix unit
  std::array<const AttentionKernel*, 2> kernels_{};
  std::vector<PathBound> bounds_;  ///< of both kernels
  std::array<std::optional<OutputHead>, 2> heads_;
  std::array<std::int64_t, 2> splits_{};
};

}  // namespace kvsim::fuzz
