// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/attention/visible_keys.h"
#include "sim/error_bounds.h"
#include "sim/exp_models.h"
#include "sim/linear.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "sim/units/unit_errors.h"
#include "softfloat/result.h"

/// Where an attention kernel rounds, as numbers: what a bound on its error is made of.
/// docs/fuzzing.md says what becomes of them.
namespace kvsim::fuzz {

inline constexpr double binary32_roundoff = 0x1p-24;

/// How a sum of products errs.
struct SumErrors {
  /// A chain: term by term, or block by block of a matrix unit, each of which errs as `chain` says
  /// by what the partial sums come to. Otherwise the sum errs by `relative` · Σ|a·b|.
  bool is_chain = false;
  UnitErrors chain;
  double relative = 0;      ///< γ of the order's height
  double products = 0;      ///< beside the chain: roundings of products, as a multiple of Σ|a·b|
  double term_quantum = 0;  ///< and that much for every term, where products are subnormal

  /// Of an order, for sums of `terms` products of numbers of `input`. Errors (usage): an order or a
  /// matrix unit for which no bound is known.
  static Result<SumErrors> of_order(const Order& order, Product product, std::int64_t terms);
  /// Of a linear kernel's first outputs.
  static Result<SumErrors> of_linear(const LinearKernel& kernel, const LinearShape& shape);
  /// Term by term, each sum rounded to a format: fused, but for `roundings` of each product.
  static SumErrors term_by_term(const RoundingUnits& units, double roundings);
  /// In any order of that height, in binary32.
  static SumErrors of_height(double height);
};

/// How the results of parts of the keys become one.
enum class PartMerge : std::uint8_t {
  none,          ///< there is one part
  normalized,    ///< weights that are divided by their sum
  unnormalized,  ///< weights that come near to a sum of 1
};

/// Everything that PathBound reads of a kernel. Roundings are counted in units of `roundoff`.
struct BoundPlan {
  // q·k and what is done to it
  SumErrors scores;
  double factor_error = 0;        ///< relative error of every product, because q or k was rounded
  bool factors_are_exact = true;  ///< what is summed are products of the stored numbers
  double score_roundings = 0;     ///< each a unit of the score, binary32
  int stored_scores = 0;          ///< how often scores are rounded to storage

  // exponents and exponentials, relative to the largest score of the keys so far
  double roundoff = binary32_roundoff;  ///< of exponents, exponentials and their sums
  double exponential_quantum = 0;       ///< absolute error of a small exponential
  double per_gap = 0;        ///< roundings, each a unit of the distance to the largest score
  double per_magnitude = 0;  ///< each a unit of the largest score
  double fixed = 1;          ///< each a unit of 1
  double exponential = 0;    ///< relative error of exponentials beside their rounding
  double beyond = 0;         ///< exponents may be that much further from 0 than the distance
  double dropped_beyond = std::numeric_limits<double>::infinity();  ///< weights that far may be 0
  /// Where the maximum starts: no bound for queries whose scores are all below.
  double lowest_maximum = -std::numeric_limits<double>::infinity();

  // probabilities, and their product with V
  RoundingUnits stored{softfloat::binary32};  ///< format of probabilities
  bool divided_first = false;  ///< probabilities are divided by their sum before that
  bool sums_stored = false;    ///< the sum is one of rounded probabilities
  bool scale_is_known = true;  ///< the maximum that they are relative to is known
  double division = 0;         ///< relative error of that division
  double row_sum = 0;          ///< relative error of their sum
  SumErrors values;
  double rescaling = 0;          ///< relative error of multiplying the outputs so far
  double rescaling_quantum = 0;  ///< absolute error of the factor

  // blocks of keys, part by part in the order of the kernel
  std::vector<attention::KeyRange> parts;
  std::int64_t block = 1;  ///< keys between two looks at the maximum
  bool last_to_first = false;
  PartMerge merge = PartMerge::none;
  double merge_per_magnitude = 0;  ///< of weights: each a unit of the largest logarithm of a sum
  double merge_fixed = 0;          ///< each a unit of 1
  double merge_offset = 0;         ///< relative error of the sum of the weights beside roundings
  double merge_roundings = 0;      ///< of outputs on their way
  std::optional<RoundingUnits> stored_parts;  ///< outputs of parts are rounded to it

  // outputs
  double finish = 0;                    ///< roundings of an output before it is stored
  std::optional<RoundingUnits> output;  ///< format in which it is stored; nothing: binary32
};

/// The relative error of a model's exponentials between −86 and 0, beside one rounding to binary32:
/// tests/fuzz/path_bound_test.cc measures it.
[[nodiscard]] double exponential_error(ExpModel model);

/// The plan of a kernel for a problem. Errors (usage): a kernel for which no bound is known, with
/// the reason; what check_problem() of the kernel finds.
[[nodiscard]] Result<BoundPlan> plan_bound(const AttentionKernel& kernel,
                                           const AttentionProblem& problem);

}  // namespace kvsim::fuzz
