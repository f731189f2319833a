// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "fuzz/flip/case.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/score.h"

/// How a search changes a case. Exponents come first, then significands (Zou et al., "A genetic
/// algorithm for detecting significant floating-point inaccuracies", ICSE 2015); algebraic seeds
/// where random numbers would not get (Guo and Rubio-González, "Efficient generation of
/// error-inducing floating-point inputs via symbolic execution", ICSE 2020); narrow intervals
/// (Chiang et al., "Efficient search for inputs causing high floating-point errors", PPoPP 2014).
namespace kvsim::fuzz {

enum class Mutation : std::uint8_t {
  exponent,     ///< a span times a power of two
  significand,  ///< one bit of some significands, or all of their bits
  sign,         ///< a span negated
  same_sign,    ///< a span gets one sign: P·V that only grows
  copy,         ///< a span from elsewhere in the tensor
  narrow,       ///< a span redrawn from a narrow interval of magnitudes
  cross,        ///< one tensor, or a span of it, from another case
  cancel,       ///< sums: two terms that cancel. attention: two keys change places
  absorb,       ///< sums: terms at half an ulp of a large one, so that additions tie. attention:
                ///< keys with nearly equal scores, or one that is largest in its block
  margin,       ///< the exact margin moved to where one path is just wrong
  align,        ///< attention: the tokens' difference along the difference of the paths' outputs
};
inline constexpr std::size_t mutation_count = 11;

/// How often each mutation is taken, relative to the others; not all 0.
using MutationWeights = std::array<std::uint8_t, mutation_count>;

/// Weights of one member of a swarm: about half of the mutations are left out (Groce et al., "Swarm
/// testing", ISSTA 2012). `margin` and `align` never are.
[[nodiscard]] MutationWeights swarm_weights(Random& random);

/// A case with its score.
struct ScoredCase {
  FlipCase flip_case;
  FlipScore score;
  double fitness = 0;
  Claim claim;  ///< of what the shape's target looks for
};

class Mutator {
 public:
  Mutator(const FlipScorer& scorer, const ValueFitter& fitter)
      : scorer_(scorer), fitter_(fitter), shape_(scorer.shape()) {}

  /// A case to begin with: as random search draws it, then built up for errors.
  [[nodiscard]] FlipCase seed(Random& random) const;
  /// A changed copy of the parent.
  [[nodiscard]] FlipCase mutate(const ScoredCase& parent, const FlipCase& other,
                                const MutationWeights& weights, Random& random) const;
  /// Moves the tokens alone, to where the worse path of a case with that score is just wrong: what
  /// changes elsewhere changes where the tie is. `align`: of attention, lays their difference along
  /// that of the paths' outputs first.
  void move_margin(const FlipScore& score, FlipCase& child, bool align, Random& random) const;

 private:
  /// A rectangle of a tensor: rows of its last dimension.
  struct Span {
    CaseTensor tensor = CaseTensor::tokens;
    std::int64_t columns = 1;  ///< of the tensor
    std::int64_t first_row = 0, row_count = 1;
    std::int64_t first_column = 0, column_count = 1;
  };
  [[nodiscard]] CaseTensor pick_tensor(Random& random) const;
  [[nodiscard]] Span pick_span(Random& random) const;
  void change(FlipCase& flip_case, const Span& span,
              const std::function<double(double)>& changed) const;

  void apply(Mutation mutation, const ScoredCase& parent, const FlipCase& other, FlipCase& child,
             Random& random) const;
  void flip_bits(FlipCase& child, Random& random) const;
  void copy_span(const FlipCase& from, FlipCase& child, Random& random) const;
  void narrow(FlipCase& child, Random& random) const;
  void cancel_terms(FlipCase& child, Random& random) const;
  void absorb_terms(FlipCase& child, Random& random) const;
  void move_sum_margin(const FlipScore& score, FlipCase& child, Random& random) const;
  void exchange_keys(FlipCase& child, Random& random) const;
  void level_scores(FlipCase& child, Random& random) const;
  /// Sets the tokens, or with `keep` moves them, so that 0 lies between the paths' differences.
  void align_tokens(FlipCase& child, bool keep, Random& random) const;

  const FlipScorer& scorer_;
  const ValueFitter& fitter_;
  const CaseShape& shape_;
};

}  // namespace kvsim::fuzz
