// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "experiments/statistics/samples.h"
#include "tests/experiments/statistics/reference.h"

namespace kvsim::statistics {
namespace {

using List = std::vector<double>;

double figure_of(const std::string& name, std::span<const double> values) {
  const Moments found = moments(values);
  if (name == "variance") return found.squares / found.n;
  if (name == "max") return *std::max_element(values.begin(), values.end());
  return found.mean;
}

ClusterFigure figure(const List& data, const std::string& name) {
  return [data, name](std::span<const std::int64_t> drawn) {
    List values;
    for (const std::int64_t index : drawn) values.push_back(data[static_cast<std::size_t>(index)]);
    return figure_of(name, values);
  };
}

// SciPy computes the intervals of the same resamples, which make_reference.py draws for itself.
TEST(ClusterBootstrap, EqualsScipyOnTheSameDraws) {
  for (const nlohmann::json& row : reference("bootstrap")) {
    const List data = numbers(row["data"]);
    BootstrapSettings settings;
    settings.resamples = row["resamples"];
    settings.confidence = row["confidence"];
    settings.seed = 5;
    settings.stream = 3;
    const Result<Bootstrap> found =
        cluster_bootstrap(static_cast<std::int64_t>(data.size()),
                          figure(data, row["figure"].get<std::string>()), settings);
    ASSERT_TRUE(found) << found.error().message;
    expect_near(found->percentile.low, row["percentile"][0], "low");
    expect_near(found->percentile.high, row["percentile"][1], "high");
    expect_near(found->standard_error, row["error"], "error");
    ASSERT_EQ(found->bca.has_value(), row.contains("BCa"));
    if (!found->bca) continue;
    expect_near(found->bca->low, row["BCa"][0], "BCa low");
    expect_near(found->bca->high, row["BCa"][1], "BCa high");
  }
}

// Efron, Tibshirani, 1993, section 14.3: variance of 26 numbers of the spatial test, 90 %: value
// 171.5, percentile (100.8, 233.9), BCa (115.8, 259.6), z₀ = .146, a = .061, from 2,000 resamples
// of their own.
TEST(ClusterBootstrap, IsNearAPublishedExample) {
  const List data = {48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6,
                     0,  33, 28, 34, 4,  32, 24, 47, 41, 24, 26, 30, 41};
  BootstrapSettings settings;
  settings.resamples = 2000;
  settings.confidence = .9;
  const Result<Bootstrap> found = cluster_bootstrap(26, figure(data, "variance"), settings);
  ASSERT_TRUE(found && found->bca);
  EXPECT_NEAR(found->percentile.value, 171.5, .05);
  EXPECT_NEAR(found->acceleration, .061, .0005);
  EXPECT_NEAR(found->bias_correction, .146, .06);
  EXPECT_NEAR(found->percentile.low, 100.8, 8);
  EXPECT_NEAR(found->percentile.high, 233.9, 8);
  EXPECT_NEAR(found->bca->low, 115.8, 8);
  EXPECT_NEAR(found->bca->high, 259.6, 10);
}

TEST(ClusterBootstrap, ThreadsChangeNothingAndStreamsDo) {
  const List data = {3, 1, 4, 1, 5, 9, 2, 6};
  BootstrapSettings settings;
  settings.resamples = 300;
  const Result<Bootstrap> one = cluster_bootstrap(8, figure(data, "mean"), settings);
  settings.threads = 3;
  const Result<Bootstrap> three = cluster_bootstrap(8, figure(data, "mean"), settings);
  settings.stream = 1;
  const Result<Bootstrap> other = cluster_bootstrap(8, figure(data, "mean"), settings);
  ASSERT_TRUE(one && three && other);
  EXPECT_EQ(one->percentile, three->percentile);
  EXPECT_EQ(one->bca, three->bca);
  EXPECT_EQ(one->standard_error, three->standard_error);
  EXPECT_NE(one->standard_error, other->standard_error);
}

// Numbers of one cluster say the same: copies of them narrow no interval.
TEST(BootstrapMean, ClustersCountOnce) {
  const std::vector<List> single = {{1}, {2}, {4}, {7}, {8}};
  const std::vector<List> copied = {
      {1, 1, 1, 1}, {2, 2, 2, 2}, {4, 4, 4, 4}, {7, 7, 7, 7}, {8, 8, 8, 8}};
  const Result<Bootstrap> once = bootstrap_mean(single, {});
  const Result<Bootstrap> often = bootstrap_mean(copied, {});
  ASSERT_TRUE(once && often);
  EXPECT_EQ(once->percentile, often->percentile);
  EXPECT_EQ(once->percentile.value, 22.0 / 5);
  // Of a mean of n numbers the error is √(Σ d² ÷ n²): here 37.2 squares of 5 numbers.
  EXPECT_NEAR(once->standard_error, std::sqrt(37.2) / 5, .02);
  // A cluster weighs as much as it holds.
  const std::vector<List> uneven = {{1, 1, 1}, {5}, {}};
  EXPECT_EQ(bootstrap_mean(uneven, {})->percentile.value, 2);
  // Three empty clusters are drawn once in 27 times.
  EXPECT_NEAR(static_cast<double>(bootstrap_mean(uneven, {})->undefined), 10000.0 / 27, 60);
}

TEST(ClusterBootstrap, ConstantFiguresHaveNoWidth) {
  const Result<Bootstrap> found = bootstrap_mean(std::vector<List>{{.1}, {.1}, {.1}}, {});
  ASSERT_TRUE(found && found->bca);
  EXPECT_EQ(found->percentile, (Estimate{.1, .1, .1}));
  EXPECT_EQ(*found->bca, (Estimate{.1, .1, .1}));
  EXPECT_EQ(found->standard_error, 0);
}

TEST(ClusterBootstrap, SaysWhatItCannotTell) {
  const auto nan = [](std::span<const std::int64_t>) {
    return std::numeric_limits<double>::quiet_NaN();
  };
  // Defined only with cluster 0, which 1/4 of the resamples of two miss, and one of the jackknife.
  const auto first = [](std::span<const std::int64_t> drawn) {
    const bool has = std::find(drawn.begin(), drawn.end(), 0) != drawn.end();
    return has ? static_cast<double>(drawn.back()) : std::nan("");
  };
  expect_error(cluster_bootstrap(5, nan, {}), ErrorKind::cannot_tell, "nan for the data");
  expect_error(cluster_bootstrap(1, first, {}), ErrorKind::cannot_tell, "1 clusters");
  expect_error(cluster_bootstrap(std::int64_t{1} << 31, first, {}), ErrorKind::usage, "2^31");
  BootstrapSettings settings;
  settings.resamples = 1;
  expect_error(cluster_bootstrap(5, first, settings), ErrorKind::usage, "1 resamples");
  const Result<Bootstrap> found = cluster_bootstrap(2, first, {});
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->undefined), 2500, 150);
  EXPECT_FALSE(found->bca);
  const auto whole = [](std::span<const std::int64_t> drawn) {
    const bool has = std::find(drawn.begin(), drawn.end(), 0) != drawn.end() &&
                     std::find(drawn.begin(), drawn.end(), 1) != drawn.end() &&
                     std::find(drawn.begin(), drawn.end(), 2) != drawn.end();
    return has ? 1.0 : std::nan("");
  };
  expect_error(cluster_bootstrap(3, whole, {}), ErrorKind::cannot_tell, "undefined in");
  expect_error(bootstrap_mean(std::vector<List>{{1}, {std::nan("")}}, {}), ErrorKind::usage,
               "cluster 2");
}

}  // namespace
}  // namespace kvsim::statistics
