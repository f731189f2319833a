// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/jackknife.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

/// Of a mean, with a group for each number, it is Student's interval.
TEST(GroupedJackknife, OfAMeanIsStudentsInterval) {
  for (const nlohmann::json& row : reference("jackknife")) {
    const std::vector<double> data = numbers(row["data"]);
    const double sum = std::accumulate(data.begin(), data.end(), 0.0);
    const auto n = static_cast<double>(data.size());
    std::vector<double> without;
    for (const double each : data) without.push_back((sum - each) / (n - 1));
    const auto found = grouped_jackknife(sum / n, without, row["confidence"]);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->value, sum / n, "value");
    expect_near(found->low, row["interval"][0], "low", 1e-8);
    expect_near(found->high, row["interval"][1], "high", 1e-8);
  }
}

TEST(GroupedJackknife, SaysWhatItCannotTake) {
  const std::vector<double> one{1};
  expect_error(grouped_jackknife(1, one), ErrorKind::cannot_tell, "1 groups");
  const std::vector<double> bad{1, std::nan("")};
  expect_error(grouped_jackknife(1, bad), ErrorKind::usage, "without a group");
  expect_error(grouped_jackknife(std::nan(""), one), ErrorKind::usage, "value");
  expect_error(grouped_jackknife(1, one, 1), ErrorKind::usage, "confidence 1");
}

}  // namespace
}  // namespace kvsim::statistics
