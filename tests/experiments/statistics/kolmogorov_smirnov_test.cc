// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/kolmogorov_smirnov.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/predict/confidence.h"
#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(KolmogorovTail, EqualsScipy) {
  for (const nlohmann::json& row : reference("kolmogorov_tail")) {
    const double n = row["n"];
    const double d = row["d"];
    const double p = row["p"];
    const double found = kolmogorov_tail(n, d);
    if (n > 1000 && n * d * d < 4) {
      EXPECT_NEAR(found, p, 1e-8) << n << " " << d;
    } else {
      EXPECT_NEAR(found, p, 1e-9 * p) << n << " " << d;
    }
  }
  for (const nlohmann::json& row : reference("kolmogorov_limit")) {
    expect_near(kolmogorov_limit_tail(row["t"]), row["p"], "limit", 1e-12);
  }
}

// Marsaglia, Tsang, Wang, 2003, section 1: P(D < .274) = 0.6284796154565804 for ten numbers.
TEST(KolmogorovTail, EqualsPublishedValues) {
  EXPECT_NEAR(kolmogorov_tail(10, .274), 1 - 0.6284796154565804, 1e-13);
  // By hand: one number is 1/2 ± (d − 1/2) from the ends with probability 2d − 1.
  EXPECT_NEAR(kolmogorov_tail(1, .7), 1 - (2 * .7 - 1), 1e-15);
  // Two numbers, d ≤ 1/4 is always reached; at d = 1/2 + e, e < 1/2, P(D < d) = 1 − 2(1 − d)².
  EXPECT_EQ(kolmogorov_tail(2, .25), 1);
  EXPECT_NEAR(kolmogorov_tail(2, .75), 2 * .25 * .25, 1e-15);
  // The limit's well-known quantile.
  EXPECT_NEAR(kolmogorov_limit_tail(1.3581), .05, 1e-5);
}

TEST(KolmogorovTail, FallsFromOneToZeroWithoutSteps) {
  for (const double n : {1.0, 7.0, 400.0, 1000.0, 1001.0, 50'000.0}) {
    EXPECT_EQ(kolmogorov_tail(n, 0), 1);
    EXPECT_EQ(kolmogorov_tail(n, 1), 0);
    double before = 1;
    for (int step = 1; step <= 20; ++step) {
      const double d = step * .15 / std::sqrt(n);
      if (d >= 1) break;
      const double tail = kolmogorov_tail(n, d);
      EXPECT_LE(tail, before + 1e-12) << n << " " << d;
      EXPECT_GT(tail, 0) << n << " " << d;
      before = tail;
    }
    const double seam = 2 / std::sqrt(n);  // n d² = 4
    if (seam >= 1) continue;
    const double below = kolmogorov_tail(n, seam * (1 - 1e-12));
    EXPECT_NEAR(below, kolmogorov_tail(n, seam), n > 1000 ? 1e-8 : 1e-11) << n;
  }
}

TEST(OneSample, EqualsScipy) {
  for (const nlohmann::json& row : reference("one_sample")) {
    const Result<KolmogorovSmirnov> found =
        kolmogorov_smirnov(numbers(row["x"]), normal_probability_below);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->d, row["d"], "d", 1e-8);
    EXPECT_NEAR(found->p, row["p"], 1e-8);
    EXPECT_TRUE(found->exact);
  }
}

TEST(OneSample, ByHand) {
  const auto even = [](double x) { return std::fmin(1, std::fmax(0, x)); };
  EXPECT_EQ(kolmogorov_smirnov(List{.9, .1}, even)->d, .4);
  EXPECT_EQ(kolmogorov_smirnov(List{.5}, even)->d, .5);
  EXPECT_EQ(kolmogorov_smirnov(List{.5}, even)->p, 1);
  EXPECT_EQ(kolmogorov_smirnov(List{2, 3}, even)->d, 1);
  EXPECT_EQ(kolmogorov_smirnov(List{2, 3}, even)->p, 0);
  expect_error(kolmogorov_smirnov(List{}, even), ErrorKind::cannot_tell, "empty");
  expect_error(kolmogorov_smirnov(List{std::nan("")}, even), ErrorKind::usage, "nan");
  expect_error(kolmogorov_smirnov(List{1, 2}, [](double x) { return 1 - x / 4; }), ErrorKind::usage,
               "rising");
  expect_error(kolmogorov_smirnov(List{1, 2}, [](double) { return 1.5; }), ErrorKind::usage,
               "is 1.5 at 1");
}

TEST(TwoSamples, EqualScipyAndTheCountOfAllOrders) {
  for (const nlohmann::json& row : reference("two_samples")) {
    const List first = numbers(row["first"]);
    const List second = numbers(row["second"]);
    const Result<KolmogorovSmirnov> found = kolmogorov_smirnov(first, second);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->d, row["d"], "d");
    expect_near(found->p, row["p"], "p");
    EXPECT_TRUE(found->exact);
    EXPECT_EQ(kolmogorov_smirnov(second, first)->p, found->p);
  }
}

TEST(TwoSamples, ByHandAndInTheLimit) {
  // Two sizes 3, apart: 2 of C(6, 3) orders.
  EXPECT_NEAR(kolmogorov_smirnov(List{1, 2, 3}, List{4, 5, 6})->p, 2.0 / 20, 1e-9);
  EXPECT_EQ(kolmogorov_smirnov(List{1, 1}, List{1})->p, 1);
  EXPECT_EQ(kolmogorov_smirnov(List{1, 1}, List{1})->d, 0);
  expect_error(kolmogorov_smirnov(List{}, List{1}), ErrorKind::cannot_tell, "0 and 1");
  // Beyond 4,000,000 pairs: 3,000 against 3,000, moved by 90 ranks.
  List first(3000);
  List second(3000);
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<double>(i);
    second[i] = static_cast<double>(i) + 90.5;
  }
  const Result<KolmogorovSmirnov> found = kolmogorov_smirnov(first, second);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->exact);
  expect_near(found->d, 91.0 / 3000, "d");
  expect_near(found->p, kolmogorov_limit_tail(91.0 / 3000 * std::sqrt(1500)), "p", 1e-8);
}

}  // namespace
}  // namespace kvsim::statistics
