// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/score.h"
#include "softfloat/result.h"

/// Makes a flip smaller: fewer and rounder numbers, on which the two ways still choose different
/// tokens.
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

/// The part of margin ÷ bound that a shrunk case keeps unless told: the power of two below it (at
/// most half is lost). It is the same for the shrunk case, which is why shrinking it again changes
/// nothing.
[[nodiscard]] double default_floor(double ratio);

/// What shrinking may take.
struct ShrinkLimits {
  std::int64_t scores = 100'000;
  std::int64_t numbers = std::int64_t{1} << 26;  ///< of all cases that are scored
};

struct ShrunkCase {
  FlipCase flip_case;
  FlipScore score;
  Confirmation confirmation;
  CaseSize before;
  CaseSize after;
  double floor = 0;         ///< margin ÷ bound is at least that
  std::int64_t scores = 0;  ///< cases that were scored
  bool complete = true;     ///< nothing smaller was left to try when it ended
};

/// Tries, in this order and again until nothing helps: fewer keys (or terms), head dimensions,
/// query heads, significant bits (zeros and powers of two first), splits. Where a step alone loses
/// the flip, the tokens are moved to where the worse path is just wrong, as in the search. A step
/// is kept if the paths still choose different tokens, margin ÷ bound is at least `floor` (0: the
/// default), MPFR confirms it, and the case is smaller: in numbers, then splits, then significant
/// bits. The same case gives the same result. `progress` hears shares of the limits. Errors:
/// (cannot_tell) there is no flip, or its ratio is below the floor; those of FlipScorer.
[[nodiscard]] Result<ShrunkCase> shrink(const FlipCase& flip_case, double floor,
                                        const ShrinkLimits& limits = {},
                                        const std::function<void(double)>& progress = {});

}  // namespace kvsim::fuzz
