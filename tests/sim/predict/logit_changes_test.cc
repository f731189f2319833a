// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/logit_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "sim/engine/matrix.h"
#include "sim/inputs.h"
#include "sim/predict/streams.h"
#include "sim/random_weights.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

std::vector<float> state(std::uint64_t stream) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 1024; ++i) {
    values.push_back(static_cast<float>(3 * normal(9, stream, i)));
  }
  return values;
}

LogitOptions options() {
  LogitOptions result;
  result.storage = softfloat::binary32;
  result.logit_deviation = 5;
  result.trials = 2000;
  return result;
}

TEST(LogitChanges, TheLargestOfAVocabularyIsAtItsQuantile) {
  // Φ⁻¹(1 − 1 ÷ 49152) = 4.1030, from a table of the normal distribution.
  EXPECT_NEAR(logit_deviation(41.03, 49152), 10, 0.01);
  EXPECT_EQ(logit_deviation(3, 2), 3);
}

TEST(LogitChanges, EqualStatesChangeNothing) {
  const std::vector<LogitChange> changes = logit_changes(options(), state(0), state(0)).value();
  for (const LogitChange& change : changes) {
    ASSERT_EQ(change.first, 0);
    ASSERT_EQ(change.second, 0);
  }
}

// The norm takes the size of a state away: a multiple of it changes nothing but by epsilon.
TEST(LogitChanges, TheNormTakesTheSizeAway) {
  std::vector<float> twice = state(0);
  for (float& x : twice) x *= 2;
  const auto changes = logit_changes(options(), twice, state(0)).value();
  EXPECT_LT(summarize_changes(changes).deviation, 1e-4);
}

// A drift of relative size r, at right angles to the state: each logit changes by
// r · logit_deviation, the difference of two by √2 of that.
TEST(LogitChanges, ADriftOfKnownSizeGivesItsDeviation) {
  const std::vector<float> off = state(0);
  const std::vector<float> other = state(1);
  constexpr double r = 0.01;
  std::vector<float> on = off;
  for (std::size_t i = 0; i < on.size(); ++i) on[i] += static_cast<float>(r) * other[i];
  const DifferenceErrors errors = summarize_changes(logit_changes(options(), on, off).value());
  EXPECT_EQ(errors.trials, 2000);
  const double expected = r * 5 * std::sqrt(2.0);
  EXPECT_NEAR(errors.deviation, expected, 0.1 * expected);
  EXPECT_NEAR(errors.mean, 0, 4 * expected / std::sqrt(2000.0));
}

// Two kernels on the same state: no pair of logits moves further than the bound, which is that of
// the largest pair.
TEST(LogitChanges, OneOperatorMovesNoFurtherThanItsRunningBound) {
  constexpr std::int64_t terms = 1024;
  constexpr std::int64_t pairs = 8;
  LogitOptions request = options();
  request.storage = softfloat::binary16;
  request.norm_epsilon = 0;
  SingleOperator matrix;
  matrix.on = find_linear_kernel("h100-gemv");
  matrix.off = find_linear_kernel("h100-gemm");
  matrix.off_rows = 100;
  matrix.outputs = 32000;
  matrix.multiprocessors = 132;
  matrix.pairs = pairs;
  // A state of binary16 numbers with a root mean square of 1.0003: rounded to binary16 again, what
  // the norm makes of it is the same state.
  std::vector<float> alternating;
  for (std::int64_t i = 0; i < terms; ++i) {
    alternating.push_back(i % 2 == 0 ? 1.400390625F : -0.199951171875F);
  }
  const std::optional<double> bound = single_operator_bound(request, matrix, alternating).value();
  ASSERT_TRUE(bound);
  EXPECT_LT(*bound, 0.01);

  std::vector<float> rows(2 * pairs * terms);
  const RandomWeights weights{1, streams::output_matrix | std::uint64_t{1} << 63, request.storage,
                              5.0F / 32.0F};
  ASSERT_TRUE(fill_random_weights(weights, 0, rows));
  const auto logits = [&](const LinearKernel& kernel, std::int64_t launch_rows) {
    const Order order =
        linear_order(kernel, {launch_rows, 32000, terms, request.storage, 132}).value();
    std::vector<float> out;
    for (std::int64_t token = 0; token < 2 * pairs; ++token) {
      MatrixProblem problem;
      problem.order = order;
      problem.product = Product::fused;
      problem.input = request.storage;
      problem.accumulator = softfloat::binary32;
      problem.rows = problem.columns = 1;
      problem.terms = terms;
      problem.a = alternating.data();
      problem.a_stride = terms;
      problem.b = rows.data() + token * terms;
      problem.b_stride = 1;
      out.push_back(0);
      EXPECT_TRUE(sum_matrix(problem, &out.back(), 1));
    }
    return out;
  };
  const std::vector<float> on = logits(*matrix.on, 1);
  const std::vector<float> off = logits(*matrix.off, 100);
  double moved = 0;
  for (std::size_t i = 0; i < on.size(); i += 2) {
    moved =
        std::max(moved, std::abs((static_cast<double>(on[i]) - static_cast<double>(on[i + 1])) -
                                 (static_cast<double>(off[i]) - static_cast<double>(off[i + 1]))));
  }
  EXPECT_GT(moved, 0);
  EXPECT_LE(moved, *bound);
}

TEST(LogitChanges, ThreadsChangeNothing) {
  LogitOptions three = options();
  three.engine.threads = 3;
  const auto one = logit_changes(options(), state(0), state(2)).value();
  const auto other = logit_changes(three, state(0), state(2)).value();
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_EQ(one[i].first, other[i].first);
}

}  // namespace
}  // namespace kvsim
