// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/flip/bound_plan.h"
#include "fuzz/flip/column_walks.h"
#include "fuzz/flip/reference.h"
#include "sim/error_bounds.h"

namespace kvsim::fuzz {

/// The bound of one query head, but for the rounding of its outputs: how far a kernel moves that
/// head's share of the difference of the logits. The quantities are those of docs/fuzzing.md.
class HeadBound {
 public:
  /// `input` of q, k and v. All must outlive this.
  HeadBound(const BoundPlan& plan, const RoundingUnits& input, const ExactHead& head,
            const ExactKeys& keys);

  [[nodiscard]] double run();

 private:
  /// Some keys that are looked at together, in the units that the kernel has then: relative to the
  /// largest score so far.
  struct Block {
    std::size_t first = 0;
    std::size_t last = 0;
    double largest_here = 0;   ///< of its scores
    double largest = 0;        ///< of its scores and those before
    double maxima_after = 0;   ///< how often the maximum may change after it
    bool may_rescale = false;  ///< the maximum may change with it
    double common = 0;         ///< relative error of all of its weights together
  };
  /// What a part of the keys comes to.
  struct Part {
    double weight = 0;        ///< sum of its weights
    double difference = 0;    ///< its share, were it alone
    double error = 0;         ///< of that
    double weight_error = 0;  ///< relative, of the sum that its logarithm is taken of
    double magnitude = 0;     ///< Σ|w_d o_d|, from above
  };
  /// Sums over the keys of a part, relative to its largest score.
  struct Sums {
    double weight = 0;
    double along = 0;
    double absolute = 0;      ///< Σ p Σ|w_d v_d| of computed p
    double moved = 0;         ///< by relative errors of weights
    double moved_weight = 0;  ///< the same of the sum of the weights
    double rounded = 0;       ///< by rounding probabilities
    double rounded_weight = 0;
    double dropped = 0;  ///< weights that may be missing
    double most = 0;     ///< largest relative error of a weight
  };

  void find_score_errors();
  [[nodiscard]] Part part(const attention::KeyRange& keys);
  [[nodiscard]] std::vector<Block> blocks_of(const attention::KeyRange& keys) const;
  void add_block(const Block& block, const Block* before, Sums& sums);
  [[nodiscard]] double value_error(const Sums& sums, double rescalings, std::size_t keys) const;
  [[nodiscard]] double merged(const std::vector<Part>& parts) const;

  const BoundPlan& plan_;
  const RoundingUnits& input_;
  const ExactHead& head_;
  const ExactKeys& keys_;
  std::vector<double> score_error_;
  double largest_error_ = 0;  ///< of score_error_
  double magnitude_ = 0;      ///< of computed scores
  double token_sum_ = 0;      ///< Σ|w_d|

  // The part at hand.
  double part_largest_ = 0;  ///< its largest score
  double part_scale_ = 0;    ///< e^(largest score of all − its own)
  double part_weight_ = 0;
  double part_difference_ = 0;
  UnitChain chain_;
  std::vector<WalkFactor> factors_;
};

}  // namespace kvsim::fuzz
