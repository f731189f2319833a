// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/correlation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(CorrelationTest, EqualsScipy) {
  for (const nlohmann::json& row : reference("correlation")) {
    const List x = numbers(row["x"]);
    const List y = numbers(row["y"]);
    const Result<Correlation> found = pearson(x, y);
    const Result<Correlation> ranks = spearman(x, y);
    ASSERT_TRUE(found && ranks);
    // The last case is 1 + 1e−8 x: SciPy's own sums lose eight digits.
    const double relative = x[0] > 0.99 && x[0] < 1.01 ? 2e-6 : 1e-8;
    expect_near(found->r.value, row["r"], "r", relative);
    expect_near(found->p, row["p"], "p", 10 * relative);
    expect_near(ranks->r.value, row["rho"], "rho");
    expect_near(ranks->p, row["rho_p"], "p of rho", 1e-8);
    EXPECT_EQ(found->pairs, static_cast<std::int64_t>(x.size()));
    EXPECT_EQ(found->degrees, static_cast<double>(x.size() - 2));
    if (!row.contains("interval")) {
      EXPECT_EQ(found->r.low, -1);
      EXPECT_EQ(found->r.high, 1);
      continue;
    }
    expect_near(found->r.low, row["interval"][0], "low", 5 * relative);
    expect_near(found->r.high, row["interval"][1], "high", 5 * relative);
    expect_near(ranks->r.low, row["rho_interval"][0], "low of rho", 1e-8);
    expect_near(ranks->r.high, row["rho_interval"][1], "high of rho", 1e-8);
  }
}

// Hollander, Wolfe, "Nonparametric statistical methods", 1973, page 187: lightness of canned tuna
// and its quality. R's help of cor.test: t = 1.8411, df = 7, p-value = 0.1082, r = 0.5711816,
// interval -0.1497426 to 0.8955795.
TEST(CorrelationTest, EqualsAPublishedExample) {
  const List lightness = {44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1};
  const List quality = {2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8};
  const Result<Correlation> found = pearson(lightness, quality);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->r.value, .5711816, 5e-8);
  EXPECT_NEAR(found->p, .1082, 5e-5);
  EXPECT_NEAR(found->r.low, -.1497426, 5e-8);
  EXPECT_NEAR(found->r.high, .8955795, 5e-8);
}

// Wikipedia, "Spearman's rank correlation coefficient": IQ against hours of television, ρ =
// −29/165, p = .627188.
TEST(CorrelationTest, RanksEqualAPublishedExample) {
  const List iq = {106, 100, 86, 101, 99, 103, 97, 113, 112, 110};
  const List hours = {7, 27, 2, 50, 28, 29, 20, 12, 6, 17};
  const Result<Correlation> found = spearman(iq, hours);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->r.value, -29.0 / 165, 1e-9);
  EXPECT_NEAR(found->p, .627188, 5e-7);
}

TEST(CorrelationTest, EndsAtExactlyOne) {
  const List x = {1, 2, 4, 8};
  const List falling = {-3, -6, -12, -24};
  EXPECT_EQ(pearson(x, x)->p, 0);
  EXPECT_EQ(pearson(x, x)->r, (Estimate{1, 1, 1}));
  EXPECT_EQ(pearson(x, falling)->r, (Estimate{-1, -1, -1}));
  EXPECT_EQ(spearman(x, List{1, 2, 3, 100})->r, (Estimate{1, 1, 1}));
  EXPECT_EQ(pearson(List{-1, 0, 1}, List{1, -2, 1})->p, 1);
  EXPECT_EQ(pearson(List{-1, 0, 1}, List{1, -2, 1})->r.value, 0);
}

TEST(CorrelationTest, SaysWhatItCannotTell) {
  expect_error(pearson(List{1, 2}, List{1, 2}), ErrorKind::cannot_tell, "2 pairs");
  expect_error(pearson(List{1, 1, 1}, List{1, 2, 3}), ErrorKind::cannot_tell, "constant first");
  expect_error(spearman(List{1, 2, 3}, List{1, 1, 1}), ErrorKind::cannot_tell, "constant second");
  expect_error(spearman(List{1, 2, 3}, List{1, 2}), ErrorKind::usage, "3 and 2 numbers");
  expect_error(pearson(List{1, 2, std::nan("")}, List{1, 2, 3}), ErrorKind::usage, "first list");
}

Result<Correlation> partial(const List& x, const List& y, const std::vector<List>& controls) {
  std::vector<std::span<const double>> views(controls.begin(), controls.end());
  return partial_correlation(x, y, views);
}

TEST(PartialCorrelation, EqualsTheInverseOfTheCovariances) {
  for (const nlohmann::json& row : reference("partial")) {
    const Result<Correlation> found =
        partial(numbers(row["x"]), numbers(row["y"]), row["controls"].get<std::vector<List>>());
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->r.value, row["r"], "r", 1e-8);
    expect_near(found->p, row["p"], "p", 1e-8);
  }
}

// Wikipedia, "Partial correlation": 0.970 becomes 0.919 when the group is held.
TEST(PartialCorrelation, EqualsAPublishedExample) {
  const Result<Correlation> found = partial({2, 4, 15, 20}, {1, 2, 3, 4}, {{0, 0, 1, 1}});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->r.value, .919145, 5e-7);
  EXPECT_EQ(found->degrees, 1);
  EXPECT_EQ(found->r.low, -1);
  EXPECT_NEAR(pearson(List{2, 4, 15, 20}, List{1, 2, 3, 4})->r.value, .9695, 5e-4);
}

TEST(PartialCorrelation, SaysWhatItCannotTell) {
  const List x = {1, 2, 4, 7, 3};
  const List y = {3, 1, 4, 1, 5};
  const List twice = {2, 4, 8, 14, 6};
  const List one = {1, 1, 1, 1, 1};
  expect_error(partial(x, y, {one}), ErrorKind::cannot_tell, "control 1 is constant");
  expect_error(partial(y, {0, 0, 1, 0, 0}, {x, twice}), ErrorKind::cannot_tell, "control 2");
  expect_error(partial(x, y, {twice}), ErrorKind::cannot_tell, "follows from the controls");
  expect_error(partial(x, one, {y}), ErrorKind::cannot_tell, "constant");
  expect_error(partial(x, y, {y, x, twice}), ErrorKind::cannot_tell, "needed: 6");
  expect_error(partial(x, y, {{1, 2}}), ErrorKind::usage, "control 1 of 2 numbers");
}

}  // namespace
}  // namespace kvsim::statistics
