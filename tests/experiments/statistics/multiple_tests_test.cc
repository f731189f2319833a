// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/multiple_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

TEST(MultipleTests, EqualStatsmodels) {
  for (const nlohmann::json& row : reference("multiple")) {
    const List p = numbers(row["p"]);
    const Result<List> strict = bonferroni(p);
    const Result<List> discoveries = benjamini_hochberg(p);
    ASSERT_TRUE(strict && discoveries);
    ASSERT_EQ(strict->size(), p.size());
    ASSERT_EQ(discoveries->size(), p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      expect_near((*strict)[i], row["bonferroni"][i], "Bonferroni");
      expect_near((*discoveries)[i], row["bh"][i], "Benjamini-Hochberg");
    }
  }
}

// Benjamini and Hochberg, 1995, section 3.2: of these 15 p-values Bonferroni rejects three at .05,
// their procedure four.
TEST(MultipleTests, RejectWhatThePaperSays) {
  const List p = {.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344,
                  .0459, .3240, .4262, .5719, .6528, .7590, 1.0};
  const auto rejected = [](const List& adjusted) {
    return std::count_if(adjusted.begin(), adjusted.end(), [](double x) { return x <= .05; });
  };
  EXPECT_EQ(rejected(*bonferroni(p)), 3);
  EXPECT_EQ(rejected(*benjamini_hochberg(p)), 4);
}

TEST(MultipleTests, TakeAnyNumberOfProbabilities) {
  EXPECT_EQ(*bonferroni(List{}), List{});
  EXPECT_EQ(*benjamini_hochberg(List{}), List{});
  EXPECT_EQ(*benjamini_hochberg(List{1, 0}), (List{1, 0}));
  expect_error(bonferroni(List{.5, 1.5}), ErrorKind::usage, "p-value 1.5");
  expect_error(benjamini_hochberg(List{-.5}), ErrorKind::usage, "p-value -0.5");
  expect_error(benjamini_hochberg(List{std::nan("")}), ErrorKind::usage, "p-value nan");
}

}  // namespace
}  // namespace kvsim::statistics
