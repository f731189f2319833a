// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/arithmetic_probe.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/sum_model.h"
#include "gpu/reveal/tree_probe.h"
#include "sim/order.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What a caller wants to have done.
struct RevealOptions {
  std::uint64_t seed = 1;              ///< of terms compared and data checked
  std::int64_t least_outputs = 10000;  ///< compared with a replay, in every class
  /// A class of sums is probed only where that takes no more calls; the largest one always is.
  std::int64_t most_calls = 4096;
  bool arithmetic = true;  ///< probe what the tree does not tell
};

/// A difference between the back end and the replay, as small as it could be made: all terms but
/// these are 0.
struct FailingSum {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::vector<std::int64_t> terms;
  std::vector<float> left;   ///< of those terms
  std::vector<float> right;  ///< of those terms
  float seen = 0;
  float replayed = 0;
};

/// What was found out about the sums of one class.
struct RevealedSums {
  SumClass where;
  std::optional<AdditionTree> tree;  ///< nullopt: not probed, it would have taken too many calls
  std::vector<Order> orders;         ///< of the grammar with these additions, the simplest first
  ArithmeticFindings arithmetic;
  /// The first model whose replay gave every output; where there is none, the nearest.
  std::optional<SumModel> model;
  bool explained = false;
  std::int64_t outputs_checked = 0;
  std::int64_t outputs_different = 0;
  bool subnormals_as_replayed = true;  ///< the same holds where sums or products are subnormal
  std::optional<FailingSum> failing;   ///< where not explained
};

/// Calls of the operator, by what for.
struct RevealCalls {
  std::int64_t classes = 0;
  std::int64_t tree = 0;
  std::int64_t arithmetic = 0;
  std::int64_t check = 0;
  std::int64_t probes = 0;  ///< sums looked at for the trees

  [[nodiscard]] std::int64_t all() const { return classes + tree + arithmetic + check; }
};

struct Revelation {
  std::vector<RevealedSums> classes;  ///< the largest first
  bool repeatable = true;             ///< the same call gave the same bits again
  RevealCalls calls;

  /// Whether every class has a model that gave every output.
  [[nodiscard]] bool explained() const;
};

/// Finds out how an operator adds: which sums of a call add alike, their trees, the arithmetic, and
/// for each class a model whose replay is equal to the bit on data of which nothing is left but
/// rounding. Errors (cannot_tell): a call that does not repeat, probes that fit no tree; and those
/// of the back end.
[[nodiscard]] Result<Revelation> reveal(Reduction& reduction, const RevealOptions& options = {});

}  // namespace kvsim::gpu
