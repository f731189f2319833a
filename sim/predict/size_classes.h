// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/compare.h"
#include "sim/predict/difference.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// Sizes at which one row's result has the same bits.
struct SizeClass {
  std::vector<IndexRange> sizes;    ///< in the order of the sizes, adjacent ones joined
  std::vector<std::string> rules;   ///< kernel rules that give these bits, each once
  VectorDifference from_reference;  ///< against the class of the reference
};

/// One operator's bit-equality classes over a set of sizes.
struct SizeClasses {
  std::string question;            ///< "rows", "verify width", "ranks", …
  std::string operator_name;       ///< "attention", "K projection", …
  std::int64_t reference = 0;      ///< the size whose result the others are compared with
  std::vector<SizeClass> classes;  ///< that of the reference first, then by their first sizes
};

/// How an operator is asked about one size.
struct SizedOperator {
  std::string question;
  std::string operator_name;
  softfloat::Format format;  ///< of the results
  /// What fixes the bits at a size: sizes with equal texts have equal bits.
  std::function<Result<std::string>(std::int64_t size)> rule;
  /// The result of the same row at a size: always as many numbers.
  std::function<Result<std::vector<float>>(std::int64_t size)> values;
};

/// Groups sizes, in increasing order, by the bits of their results. The result of a rule is
/// computed once. `reference` is one of the sizes.
[[nodiscard]] Result<SizeClasses> classify_sizes(const SizedOperator& sized,
                                                 std::span<const std::int64_t> sizes,
                                                 std::int64_t reference);

}  // namespace kvsim
