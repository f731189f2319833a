// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/score.h"
#include "softfloat/result.h"

/// Makes a case smaller: fewer and rounder numbers, of which what it claims still holds.
namespace kvsim::fuzz {

/// How large a case is.
struct CaseSize {
  std::int64_t keys = 0;         ///< of a sum: its terms
  std::int64_t head_dim = 0;     ///< of a sum: 0
  std::int64_t query_heads = 0;  ///< of a sum: 0
  std::int64_t numbers = 0;
  std::int64_t nonzero = 0;           ///< numbers that are not 0
  std::int64_t significant_bits = 0;  ///< of all numbers, from the first 1 to the last; of 0: none
  std::int64_t splits = 0;            ///< parts of the keys or terms, of both paths together
};

/// Significant bits of a number: 0 has none, a power of two has 1.
[[nodiscard]] int significant_bits(float x);

[[nodiscard]] CaseSize size_of(const FlipScorer& scorer, const FlipCase& flip_case);

/// What a shrunk case keeps of the value of its claim (of a flip: margin ÷ bound) unless told
/// otherwise. A quarter leaves it far from a
/// tie, and the errors of a few roundings are enough for it; the margin of a find is what most of
/// its numbers together lose.
inline constexpr double default_floor_share = 0.25;

/// What shrinking may take.
struct ShrinkLimits {
  std::int64_t scores = 100'000;
  std::int64_t numbers = std::int64_t{1} << 28;  ///< of all cases that are scored
};

struct ShrunkCase {
  FlipCase flip_case;
  FlipScore score;
  Confirmation confirmation;
  Claim claim;  ///< what is left of the case's
  CaseSize before;
  CaseSize after;
  double value_before = 0;  ///< of the claim
  double floor = 0;         ///< the claim's value is at least that
  std::int64_t scores = 0;  ///< cases that were scored
  bool complete = true;     ///< nothing smaller was left to try when it ended
};

/// Tries, in this order and again until nothing helps: fewer splits, terms, heads, keys and head
/// dimensions, halves first, then ever smaller parts; fewer significant bits (zeros and powers of
/// two first), of the whole case, of heads, keys and dimensions, of single numbers. Where a step
/// alone loses a flip or a tie, the tokens are moved to where the worse path is just wrong, as in
/// the search. A step is kept if what the case claims (objective.h) is still there, its value is at
/// least `floor` (0: that of a case that was shrunk before, else the default share of the case's),
/// MPFR or the reference arithmetic confirms it, and the case is smaller: in numbers, then splits,
/// then significant bits. The same case gives the same result. `progress` hears shares of the
/// limits. Errors: (cannot_tell) the claim does not hold, or its value is below the floor; those of
/// FlipScorer.
[[nodiscard]] Result<ShrunkCase> shrink(const FlipCase& flip_case, double floor,
                                        const ShrinkLimits& limits = {},
                                        const std::function<void(double)>& progress = {});

}  // namespace kvsim::fuzz
