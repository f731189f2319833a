// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "fuzz/flip/case.h"
#include "fuzz/flip/score.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// One path, computed with the reference arithmetic.
struct ConfirmedPath {
  bool finite = false;  ///< both logits are; if not, what follows is 0
  double lowest = 0;    ///< the first token's computed logit less the second's is at least that …
  double highest = 0;   ///< … and at most that
  double least_error = 0;  ///< that difference is at least that far from the exact one
};

/// What stands on MPFR and the reference arithmetic alone: the exact difference of the logits
/// enclosed with 256 bits and directed rounding, and the tokens that both paths choose.
struct Confirmation {
  double lowest = 0;   ///< the first token's exact logit less the second's is at least that …
  double highest = 0;  ///< … and at most that
  std::array<int, 2> tokens{};  ///< what each path chooses: 0 or 1; −1 where a logit is not finite
  std::array<ConfirmedPath, 2> paths;

  /// The logits are apart for certain, and the paths choose different tokens.
  [[nodiscard]] bool flips() const {
    return margin() > 0 && tokens[0] + tokens[1] == 1;  // one 0, one 1
  }
  /// The margin, from below; 0 where the enclosure holds 0.
  [[nodiscard]] double margin() const { return lowest > 0 ? lowest : highest < 0 ? -highest : 0; }
  /// How far apart the two paths' differences are, from below; 0 where one is not finite.
  [[nodiscard]] double apart() const;
};

/// Encloses the exact result and recomputes both paths: sums on softfloat, node by node
/// (sum_products()), attention with the simulator's scalar code. Logits of attention are compared
/// in MPFR. Errors (cannot_tell): exact logits beyond binary64; computed ones too near to tell
/// apart.
[[nodiscard]] Result<Confirmation> confirm(const FlipScorer& scorer, const FlipCase& flip_case);

}  // namespace kvsim::fuzz
