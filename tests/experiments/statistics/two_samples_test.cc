// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/two_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(MannWhitneyTest, EqualsScipyAndTheCountOfAllDivisions) {
  int exact = 0;
  for (const nlohmann::json& row : reference("mann_whitney")) {
    const List first = numbers(row["first"]);
    const List second = numbers(row["second"]);
    const Result<MannWhitney> normal = mann_whitney(first, second, MannWhitneyMethod::normal);
    ASSERT_TRUE(normal) << normal.error().message;
    EXPECT_EQ(normal->u, row["u"]);
    EXPECT_NEAR(normal->z, row["z"], 1e-8);
    expect_near(normal->p, row["normal"], "normal p", 1e-8);
    EXPECT_FALSE(normal->exact);
    if (!row.contains("exact")) continue;
    ++exact;
    const Result<MannWhitney> found = mann_whitney(first, second);
    const Result<MannWhitney> turned = mann_whitney(second, first);
    ASSERT_TRUE(found && turned);
    EXPECT_TRUE(found->exact);
    expect_near(found->p, row["exact"], "exact p");
    EXPECT_EQ(turned->p, found->p);
    EXPECT_EQ(turned->z, -found->z);
    EXPECT_NEAR(turned->rank_biserial, -found->rank_biserial, 1e-9);
  }
  EXPECT_EQ(exact, 7);
}

// Hollander, Wolfe, "Nonparametric statistical methods", 1973, page 69: permeability of the
// membrane at term and at 12 to 26 weeks. W = 35, one-sided p = .127 (R's help: 0.1272).
TEST(MannWhitneyTest, EqualsAPublishedExample) {
  const List at_term = {.80, .83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, .73, 1.46};
  const List earlier = {1.15, .88, .90, .74, 1.21};
  const Result<MannWhitney> found = mann_whitney(at_term, earlier);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->u, 35);
  EXPECT_NEAR(found->p / 2, .1272, 5e-5);
  EXPECT_NEAR(found->rank_biserial, (35 - 15) / 50.0, 1e-9);  // pairs larger less smaller
}

TEST(MannWhitneyTest, ChoosesTheMethodByTheSizes) {
  List small(49);
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = static_cast<double>(i * i);
  List large = small;
  large.push_back(5000);
  EXPECT_TRUE(mann_whitney(small, small)->exact);
  EXPECT_EQ(mann_whitney(small, small)->p, 1);
  EXPECT_EQ(mann_whitney(small, small)->rank_biserial, 0);
  EXPECT_FALSE(mann_whitney(small, large)->exact);
  EXPECT_NEAR(mann_whitney(small, large)->p,
              mann_whitney(small, large, MannWhitneyMethod::exact)->p, .005);
  const List apart(200'000, 1);
  const List lower(100'000, 0);
  EXPECT_EQ(mann_whitney(apart, lower)->p, 0);
  EXPECT_EQ(mann_whitney(apart, lower)->u, 2e10);
  EXPECT_EQ(mann_whitney(apart, lower)->rank_biserial, 1);
}

TEST(MannWhitneyTest, SaysWhatItCannotTell) {
  expect_error(mann_whitney(List{}, List{1}), ErrorKind::cannot_tell, "0 and 1 numbers");
  expect_error(mann_whitney(List{2, 2}, List{2}), ErrorKind::cannot_tell, "3 equal numbers");
  expect_error(mann_whitney(List{1, std::nan("")}, List{1}), ErrorKind::usage, "number 2 is nan");
  expect_error(mann_whitney(List(199, 1), List{2}, MannWhitneyMethod::exact), ErrorKind::usage,
               "200 numbers");
}

TEST(WelchTTest, EqualsScipy) {
  for (const nlohmann::json& row : reference("welch")) {
    const Result<WelchT> found = welch_t(numbers(row["first"]), numbers(row["second"]));
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->t, row["t"], "t");
    expect_near(found->degrees, row["degrees"], "degrees");
    expect_near(found->p, row["p"], "p", 1e-8);
    expect_near(found->difference.value, row["difference"], "difference");
    expect_near(found->difference.low, row["low"], "low", 1e-8);
    expect_near(found->difference.high, row["high"], "high", 1e-8);
    expect_near(found->cohens_d, row["d"], "d");
    EXPECT_EQ(*cohens_d(numbers(row["first"]), numbers(row["second"])), found->cohens_d);
  }
}

// Student's hours of sleep (Biometrika 6(1), 1908) as R's help of t.test has them: t = -1.8608,
// df = 17.776, p-value = 0.07939, interval -3.3654832 to 0.2054832.
TEST(WelchTTest, EqualsAPublishedExample) {
  const List first = {.7, -1.6, -.2, -1.2, -.1, 3.4, 3.7, .8, 0, 2};
  const List second = {1.9, .8, 1.1, .1, -.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const Result<WelchT> found = welch_t(first, second);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->t, -1.8608, 5e-5);
  EXPECT_NEAR(found->degrees, 17.776, 5e-4);
  EXPECT_NEAR(found->p, .07939, 5e-6);
  EXPECT_NEAR(found->difference.low, -3.3654832, 5e-8);
  EXPECT_NEAR(found->difference.high, .2054832, 5e-8);
  // −1.58 over the root of the mean of the variances, since the samples are of one size.
  EXPECT_NEAR(found->cohens_d, -1.58 / std::sqrt((3.200556 + 4.009) / 2), 1e-6);
}

TEST(WelchTTest, SaysWhatItCannotTell) {
  expect_error(welch_t(List{1}, List{1, 2}), ErrorKind::cannot_tell, "1 and 2 numbers");
  expect_error(welch_t(List{1, 1}, List{2, 2}), ErrorKind::cannot_tell, "constant");
  expect_error(welch_t(List{1, 2}, List{2, std::nan("")}), ErrorKind::usage, "second sample");
  expect_error(welch_t(List{1, 2}, List{2, 3}, 0), ErrorKind::usage, "confidence 0");
  expect_error(cohens_d(List{}, List{}), ErrorKind::cannot_tell, "0 and 0");
  EXPECT_EQ(welch_t(List{1, 2}, List{2, 1})->p, 1);
  // Far apart: p is below the smallest number.
  List low(1000);
  List high(1000);
  for (std::size_t i = 0; i < low.size(); ++i) {
    low[i] = i % 2 == 0 ? 0 : 1;
    high[i] = low[i] + 1e6;
  }
  EXPECT_EQ(welch_t(low, high)->p, 0);
}

}  // namespace
}  // namespace kvsim::statistics
