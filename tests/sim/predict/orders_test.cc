// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "sim/attention_row.h"
#include "sim/error_summary.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

AttentionValues gaussian(const AttentionShape& shape, std::uint64_t seed) {
  const AttentionInputs inputs =
      generate_attention(InputKind::gaussian, seed, shape, softfloat::binary16);
  AttentionValues values;
  for (const auto& [from, to] : {std::pair{&inputs.q, &values.q}, std::pair{&inputs.k, &values.k},
                                 std::pair{&inputs.v, &values.v}}) {
    for (const softfloat::Bits bits : *from) {
      to->push_back(softfloat::to_double(softfloat::binary16, bits));
    }
  }
  return values;
}

OrderedVariant variant(const char* text) {
  const Order order = parse_order(text).value();
  return {text, {order, order, order}};
}

OrderStudyOptions options(const AttentionShape& shape) {
  OrderStudyOptions result;
  result.shape = shape;
  result.variants = {variant("sequential")};
  return result;
}

const ErrorSummary& error(const OrderStudy& report, Stage stage) {
  for (const StageReport& entry : report.stages) {
    if (entry.stage == stage) return entry.error;
  }
  throw std::logic_error("stage missing");
}

const ErrorSummary& control(const OrderStudy& report, std::string_view name) {
  for (const ControlReport& entry : report.controls) {
    if (entry.name == name) return entry.error;
  }
  throw std::logic_error("control missing");
}

// Rounding once to binary16: mean relative error 1.76e-4 and relative L2 2.0e-4 to 2.1e-4 for
// numbers whose logarithms are spread evenly, whatever the number of keys.
TEST(Predict, OutputRoundedOnceIsFlatInLength) {
  for (const std::int64_t kv_len : {16, 128, 512}) {
    const AttentionShape shape{
        .query_heads = 64, .kv_heads = 16, .kv_len = kv_len, .head_dim = 128};
    const OrderStudy report = study_orders(options(shape), gaussian(shape, 7)).value();
    const ErrorSummary& once = control(report, "rounded once");
    EXPECT_NEAR(once.mean_relative_error, 1.76e-4, 0.05 * 1.76e-4) << kv_len;
    EXPECT_GE(once.relative_l2, 2.0e-4) << kv_len;
    EXPECT_LE(once.relative_l2, 2.1e-4) << kv_len;
  }
}

// FP16 multiply and add, sequential: 6.9e-4 at 16 keys, 1.7e-3 at 128, growing like √n.
TEST(Predict, Float16AccumulationGrowsWithTheRootOfTheLength) {
  const auto relative_l2 = [](std::int64_t kv_len, std::int64_t kv_heads) {
    const AttentionShape shape{
        .query_heads = 4 * kv_heads, .kv_heads = kv_heads, .kv_len = kv_len, .head_dim = 128};
    OrderStudyOptions run = options(shape);
    run.arithmetic.accumulator = softfloat::binary16;
    return error(study_orders(run, gaussian(shape, 7)).value(), Stage::values).relative_l2;
  };
  EXPECT_NEAR(relative_l2(16, 32), 6.9e-4, 0.15 * 6.9e-4);
  const double at_128 = relative_l2(128, 16);
  EXPECT_NEAR(at_128, 1.7e-3, 0.15 * 1.7e-3);
  // Four times the keys, twice the error, within the 10 % that 32 rows leave open.
  EXPECT_NEAR(relative_l2(512, 8) / at_128, 2.0, 0.2);
}

void expect_equal(const ErrorSummary& a, const ErrorSummary& b) {
  EXPECT_EQ(a.mean_relative_error, b.mean_relative_error);
  EXPECT_EQ(a.relative_l2, b.relative_l2);
  EXPECT_EQ(a.max_ulp, b.max_ulp);
  EXPECT_EQ(a.running_bound_l2, b.running_bound_l2);
  EXPECT_EQ(a.a_priori_bound_l2, b.a_priori_bound_l2);
}

TEST(Predict, ThreadsAndSimdLevelsChangeNothing) {
  const AttentionShape shape{
      .query_heads = 6, .kv_heads = 2, .query_len = 3, .kv_len = 37, .head_dim = 20};
  OrderStudyOptions run = options(shape);
  run.variants = default_variants();
  const AttentionValues inputs = gaussian(shape, 3);
  const OrderStudy one = study_orders(run, inputs).value();
  for (const SimdLevel level : list_simd_levels()) {
    for (const int threads : {1, 2, 7}) {
      run.threads = threads;
      run.simd = level;
      const OrderStudy other = study_orders(run, inputs).value();
      ASSERT_EQ(one.stages.size(), other.stages.size());
      for (std::size_t i = 0; i < one.stages.size(); ++i) {
        expect_equal(one.stages[i].error, other.stages[i].error);
      }
      for (std::size_t i = 0; i < one.differences.size(); ++i) {
        EXPECT_EQ(one.differences[i].differing, other.differences[i].differing);
      }
    }
  }
}

// Heads that share one K/V head must give what the same heads give with K and V repeated.
TEST(Predict, GroupedQueriesEqualRepeatedKeysAndValues) {
  const AttentionShape grouped{.query_heads = 8, .kv_heads = 2, .kv_len = 40, .head_dim = 16};
  const AttentionShape repeated{.query_heads = 8, .kv_heads = 8, .kv_len = 40, .head_dim = 16};
  const AttentionValues inputs = gaussian(grouped, 5);
  AttentionValues copies{inputs.q, {}, {}};
  const std::ptrdiff_t head = 40 * 16;
  for (std::ptrdiff_t h = 0; h < 8; ++h) {
    const std::ptrdiff_t first = h / 4 * head;
    copies.k.insert(copies.k.end(), inputs.k.begin() + first, inputs.k.begin() + first + head);
    copies.v.insert(copies.v.end(), inputs.v.begin() + first, inputs.v.begin() + first + head);
  }
  const OrderStudy a = study_orders(options(grouped), inputs).value();
  const OrderStudy b = study_orders(options(repeated), copies).value();
  for (std::size_t i = 0; i < a.stages.size(); ++i)
    expect_equal(a.stages[i].error, b.stages[i].error);
}

TEST(Predict, CausalQueriesSeeTheirOwnPrefix) {
  // The last of three queries sees what a single query over the whole cache sees.
  const AttentionShape many{
      .query_heads = 1, .kv_heads = 1, .query_len = 3, .kv_len = 12, .head_dim = 8};
  EXPECT_EQ(many.visible_keys(0), 10);
  EXPECT_EQ(many.visible_keys(2), 12);
  const OrderStudy report = study_orders(options(many), gaussian(many, 2)).value();
  EXPECT_EQ(error(report, Stage::scores).elements, 10 + 11 + 12);
  EXPECT_EQ(error(report, Stage::softmax).elements, 10 + 11 + 12);
  EXPECT_EQ(error(report, Stage::attention).elements, 3 * 8);
}

TEST(Predict, TheFloat32ControlIsAttentionInFloat32) {
  const AttentionShape shape{.query_heads = 2, .kv_heads = 1, .kv_len = 50, .head_dim = 16};
  OrderStudyOptions run = options(shape);
  run.arithmetic.round_p = false;
  run.arithmetic.round_out = false;
  run.arithmetic.round_scores = false;
  const OrderStudy report = study_orders(run, gaussian(shape, 4)).value();
  expect_equal(control(report, "float32 accumulator"), error(report, Stage::attention));
  EXPECT_LT(control(report, "exact accumulator").relative_l2, 1e-14);
}

// Errors ½, 1 and 3 × 2^−24; the infinite element and the one whose exact value is NaN are in no
// figure, the exact zero in no relative error.
TEST(ErrorSums, FiguresFollowTheirDefinitions) {
  const double infinity = HUGE_VAL;
  const BoundedValues values{.value = {3, 1.5, infinity, 3 * 0x1p-24, 5},
                             .running = {2, 1, infinity, 1, infinity},
                             .a_priori = {4, 1, infinity, 1, infinity}};
  const std::vector<DoubleDouble> exact{4.0, 1.0, 7.0, 0.0, std::nan("")};
  ErrorSums sums;
  sums.add(softfloat::binary16, values, exact);
  EXPECT_TRUE(sums.bounds_hold());
  const ErrorSummary summary = sums.summary();
  EXPECT_EQ(summary.elements, 5);
  EXPECT_EQ(summary.not_finite, 2);
  EXPECT_DOUBLE_EQ(summary.mean_relative_error, (0.25 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(summary.relative_l2, std::sqrt((1 + 0.25 + 9 * 0x1p-48) / 17));
  EXPECT_EQ(summary.max_ulp, 512);  // ½ in units of 2^−10; 1 in units of 2^−8 is less
  EXPECT_EQ(summary.max_absolute, 1);
  EXPECT_EQ(summary.max_of_running_bound, 0.5);
  EXPECT_EQ(summary.running_bound_l2, infinity);
  EXPECT_EQ(summary.a_priori_bound_l2, infinity);

  // A row of smaller errors changes neither maximum, and means over both rows.
  ErrorSums all;
  all.add(sums);
  ErrorSums small;
  small.add(softfloat::binary16, {.value = {2.25}, .running = {0.5}, .a_priori = {0.5}},
            std::vector<DoubleDouble>{2.0});
  all.add(small);
  EXPECT_DOUBLE_EQ(all.summary().mean_relative_error, (0.25 + 0.5 + 0.125) / 3);
  EXPECT_DOUBLE_EQ(all.summary().relative_l2, std::sqrt((1.3125 + 9 * 0x1p-48) / 21));
  EXPECT_EQ(all.summary().max_ulp, 512);
  EXPECT_EQ(all.summary().max_absolute, 1);
  EXPECT_EQ(small.summary().running_bound_l2, 0.25);
  EXPECT_EQ(small.summary().a_priori_bound_l2, 0.25);
}

TEST(ErrorSums, EveryBrokenBoundIsSeen) {
  const auto hold = [](double value, double running, double a_priori, double exact) {
    ErrorSums one;
    one.add(softfloat::binary16, {.value = {value}, .running = {running}, .a_priori = {a_priori}},
            std::vector<DoubleDouble>{exact});
    ErrorSums all;
    all.add(one);
    all.add(ErrorSums{});
    EXPECT_EQ(one.bounds_hold(), all.bounds_hold());
    return all.bounds_hold();
  };
  const double infinity = HUGE_VAL;
  EXPECT_TRUE(hold(3, 1, 1, 4));
  EXPECT_FALSE(hold(3, 0.999, 1, 4));
  EXPECT_FALSE(hold(3, 1, 0.999, 4));
  EXPECT_FALSE(hold(3, std::nan(""), 1, 4));
  EXPECT_FALSE(hold(3, 1, std::nan(""), 4));
  EXPECT_TRUE(hold(infinity, infinity, infinity, 4));
  EXPECT_FALSE(hold(infinity, 1, infinity, 4));
  EXPECT_FALSE(hold(std::nan(""), infinity, 1, 4));
}

TEST(Predict, BadShapesAreNamed) {
  const auto message = [](const AttentionShape& shape, const char* order) {
    OrderStudyOptions run = options(shape);
    run.variants = {variant(order)};
    const auto result = study_orders(run, {});
    return result ? std::string("accepted") : result.error().message;
  };
  AttentionShape shape{.query_heads = 2, .kv_heads = 1, .kv_len = 4, .head_dim = 0};
  EXPECT_EQ(message(shape, "sequential"), "head-dim is 0; accepted: 1 to 1048576");
  shape.head_dim = 4;
  shape.query_len = 5;
  EXPECT_EQ(message(shape, "sequential"), "query-len is 5; accepted: at most kv-len, 4");
  shape.query_len = 1;
  shape.kv_heads = 3;
  EXPECT_EQ(message(shape, "sequential"), "query heads is 2; accepted: a multiple of kv-heads, 3");
  shape.kv_heads = 1;
  EXPECT_THAT(message(shape, "perm(0,2,1)"),
              testing::HasSubstr("order perm(0,2,1) cannot sum q·k over head-dim"));
}

TEST(Predict, DifferencesAreCountedBetweenOrders) {
  const AttentionShape shape{.query_heads = 4, .kv_heads = 1, .kv_len = 256, .head_dim = 64};
  OrderStudyOptions run = options(shape);
  run.variants = {variant("sequential"), variant("sequential"), variant("reverse")};
  run.arithmetic.accumulator = softfloat::binary16;
  const OrderStudy report = study_orders(run, gaussian(shape, 1)).value();
  for (const DifferenceCount& count : report.differences) {
    EXPECT_EQ(count.differing[0][1], 0);
    EXPECT_EQ(count.differing[0][2], count.differing[2][0]);
    EXPECT_GT(count.differing[0][2], 0) << to_string(count.stage);
  }
  EXPECT_TRUE(report.bounds_hold);
}

}  // namespace
}  // namespace kvsim
