// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>

#include "fuzz/flip/model_score.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// How long a case of a model is.
struct ModelCaseSize {
  std::int64_t prompt_tokens = 0;
  std::int64_t generated_tokens = 0;
};

[[nodiscard]] ModelCaseSize size_of(const ModelCase& model_case);

struct ShrunkModelCase {
  ModelFlip flip;  ///< with the case that is left
  ModelCaseSize before;
  ModelCaseSize after;
  double value_before = 0;  ///< margin ÷ unit
  double floor = 0;         ///< the value is at least that
  std::int64_t tried = 0;   ///< cases that were judged
  bool complete = true;     ///< nothing shorter was left to try when it ended
};

/// Tries, again and again until nothing helps: fewer tokens, of the prompt and of those behind it,
/// halves first and single ones last; then more of the tokens as the prompt, so that fewer are
/// generated. What is left is fed to both arms as it stands, whether or not `on` would choose it.
/// A step is kept if the arms still choose different tokens at the end, the margin is beyond what
/// the judge may be off, its value is at least `floor` (0: that of a case that was shrunk before,
/// else default_floor_share of the case's), and the case is shorter, or has fewer generated tokens.
/// At most `most` cases are judged. The same case gives the same result. `progress` hears shares of
/// `most`. Errors: (cannot_tell) no flip, or one below the floor; those of ModelScorer::judge.
[[nodiscard]] Result<ShrunkModelCase> shrink(const ModelScorer& scorer, const ModelCase& model_case,
                                             double floor, std::int64_t most,
                                             const std::function<void(double)>& progress = {});

}  // namespace kvsim::fuzz
