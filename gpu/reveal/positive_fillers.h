// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/reveal/positive_operator.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Scores of a softmax with 16-bit results, and the columns at which they tell a sum from the next.
struct Fillers {
  float large = 0;
  float tiny = 0;
  float unit = 0;
  float filler = 0;
  std::vector<std::int64_t> columns;
  std::vector<float> low;   ///< at those columns: the sum is 1
  std::vector<float> high;  ///< the sum is 1 + 2^−23
};

/// e of a filler must lie so close to half way between two numbers of the result's format that e ÷
/// sum falls to one side or the other of it. Many pairs of a largest score and a filler are looked
/// at with the correctly rounded e, the nearest tried on the operator. `tiny` and `unit`: scores
/// below the largest of ¾ of half an ulp and of one ulp. Errors (cannot_tell): none serves, as in
/// rows too short to have four columns of them.
[[nodiscard]] Result<Fillers> find_fillers(PositiveOperator& of, double tiny, double unit);

}  // namespace kvsim::gpu
