// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "sim/philox.h"

namespace kvsim {
namespace {

using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Logits whose softmax is in proportion to these weights.
std::vector<double> logits_of(const std::vector<double>& weights) {
  std::vector<double> logits;
  for (const double weight : weights) logits.push_back(std::log(weight));
  return logits;
}

/// Draws at many (prompt, step), counted by token.
std::vector<int> draws(const std::vector<double>& logits, const Sampling& sampling, int count) {
  std::vector<int> counts(logits.size());
  for (int i = 0; i < count; ++i) {
    const auto prompt = static_cast<std::uint64_t>(i / 100);
    const auto step = static_cast<std::uint64_t>(i % 100);
    const Result<std::int64_t> token = sample_token(logits, sampling, prompt, step);
    EXPECT_TRUE(token);
    ++counts.at(static_cast<std::size_t>(*token));
  }
  return counts;
}

/// The chi-square statistic of counts against probabilities in proportion to `expected`; tokens of
/// probability 0 must not occur. The value is what a fair sampler stays below with 99.9 %.
void expect_distribution(const std::vector<int>& counts, const std::vector<double>& expected) {
  double total = 0;
  double weights = 0;
  int kept = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    weights += expected[i];
    kept += expected[i] > 0 ? 1 : 0;
    if (expected[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
    }
  }
  double statistic = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0) continue;
    const double mean = total * expected[i] / weights;
    statistic += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  if (kept == 1) return;
  const boost::math::chi_squared distribution(kept - 1);
  EXPECT_LT(statistic, boost::math::quantile(distribution, 0.999));
  EXPECT_GT(statistic, boost::math::quantile(distribution, 0.001));  // too good is wrong as well
}

TEST(Greedy, TakesTheLowerIndexOfEqualLogits) {
  EXPECT_EQ(*sample_token(std::vector{1.0, 3.0, 2.0, 3.0}, {}, 0, 0), 1);
  EXPECT_EQ(*sample_token(std::vector{-0.0, 0.0}, {}, 0, 0), 0);
  EXPECT_EQ(*sample_token(std::vector{-infinity, -1e300}, {}, 5, 5), 1);
}

TEST(SamplingUniform, IsThePhiloxNumberOfSeedPromptAndStep) {
  // An odd multiple of 2^−53 from the 52 high bits of the block at key = seed, counter = (step,
  // 2^63 + prompt), put together by hand.
  const PhiloxBlock block = philox4x32_10({9, 0, 4, 0x80000000}, {3, 0});
  const std::uint64_t bits = (std::uint64_t{block[1]} << 32) | block[0];
  EXPECT_EQ(sampling_uniform(3, 4, 9), (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52);
  std::set<double> different;
  for (std::uint64_t i = 0; i < 10; ++i) {
    different.insert(sampling_uniform(1, 1, i));
    different.insert(sampling_uniform(1, i + 20, 1));
    different.insert(sampling_uniform(i + 20, 1, 1));
  }
  EXPECT_EQ(different.size(), 30U);
}

TEST(SampleToken, DrawsInProportionToTheProbabilities) {
  const std::vector<double> weights{1, 2, 4, 8, 16, 3};
  expect_distribution(draws(logits_of(weights), {.temperature = 1, .seed = 5}, 20000), weights);
  // At temperature 2 the weights are the square roots, at ½ the squares.
  expect_distribution(draws(logits_of({1, 4, 9, 16}), {.temperature = 2, .seed = 6}, 20000),
                      {1, 2, 3, 4});
  expect_distribution(draws(logits_of({1, 2, 3, 4}), {.temperature = 0.5, .seed = 7}, 20000),
                      {1, 4, 9, 16});
}

TEST(SampleToken, KeepsExactlyTopK) {
  expect_distribution(
      draws(logits_of({5, 1, 7, 3}), {.temperature = 1, .top_k = 2, .seed = 8}, 5000),
      {5, 0, 7, 0});
  // Of three equal ones the two lower indices.
  expect_distribution(
      draws(logits_of({1, 2, 2, 2}), {.temperature = 1, .top_k = 2, .seed = 8}, 5000),
      {0, 2, 2, 0});
}

TEST(SampleToken, KeepsTheFewestThatReachTopP) {
  // Probabilities 0.5, 0.3, 0.15, 0.05 in another order: 0.5 + 0.3 reach 0.75, not 0.45 + more.
  const std::vector<double> logits = logits_of({3, 10, 1, 6});
  expect_distribution(draws(logits, {.temperature = 1, .top_p = 0.75, .seed = 9}, 5000),
                      {0, 10, 0, 6});
  expect_distribution(draws(logits, {.temperature = 1, .top_p = 0.45, .seed = 9}, 200),
                      {0, 10, 0, 0});
  expect_distribution(draws(logits, {.temperature = 1, .top_p = 0.9, .seed = 9}, 5000),
                      {3, 10, 0, 6});
  // top-k first: among the two largest, 10 is 0.625 of both.
  expect_distribution(draws(logits, {.temperature = 1, .top_k = 2, .top_p = 0.62, .seed = 9}, 200),
                      {0, 10, 0, 0});
}

TEST(SampleToken, ChangesOnlyWhereABoundaryCrossesTheCommonNumber) {
  for (std::uint64_t step = 0; step < 200; ++step) {
    const double u = sampling_uniform(2, 3, step);
    // Token 0 has the part (0, p) of the unit interval.
    const auto choose = [&](double p) {
      const std::vector<double> logits{std::log(p / (1 - p)), 0};
      return *sample_token(logits, {.temperature = 1, .seed = 2}, 3, step);
    };
    EXPECT_EQ(choose(u + 1e-9 * u), 0) << step;
    EXPECT_EQ(choose(u - 1e-9 * u), 1) << step;
  }
}

TEST(SampleToken, StandsByIndexSoThatASwapOfNearTiesChangesLittle) {
  // Two arms whose second and third token change ranks: the choice differs in the few steps whose
  // number lies in the 0.002 that a boundary has moved.
  int different = 0;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    const Sampling sampling{.temperature = 1, .seed = 4};
    different += *sample_token(logits_of({0.2, 0.401, 0.399}), sampling, 0, step) !=
                         *sample_token(logits_of({0.2, 0.399, 0.401}), sampling, 0, step)
                     ? 1
                     : 0;
  }
  EXPECT_LE(different, 10);
}

TEST(SampleToken, NeverChoosesAnImpossibleToken) {
  expect_distribution(
      draws({-infinity, 0, -infinity, 0, -5000}, {.temperature = 1, .seed = 1}, 20000),
      {0, 1, 0, 1, 0});
}

TEST(SampleToken, RefusesWhatIsNoRule) {
  const auto message = [](const Sampling& sampling, std::vector<double> logits) {
    const Result<std::int64_t> result = sample_token(logits, sampling, 0, 0);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(message({.temperature = -1}, {1}), HasSubstr("temperature -1; accepted: 0 (greedy)"));
  EXPECT_THAT(message({.temperature = std::nan("")}, {1}), HasSubstr("temperature nan; accepted"));
  EXPECT_THAT(message({.top_k = -3}, {1}), HasSubstr("top-k -3; accepted: "));
  EXPECT_THAT(message({.top_p = 0}, {1}), HasSubstr("top-p 0; accepted: "));
  EXPECT_THAT(message({.top_p = 1.5}, {1}), HasSubstr("top-p 1.5; accepted: "));
  EXPECT_THAT(message({}, {}), HasSubstr("no logits; accepted: "));
  EXPECT_THAT(message({}, {1, std::nan("")}), HasSubstr("the logit of token 1 is nan; accepted: "));
  EXPECT_THAT(message({}, {-infinity}), HasSubstr("every logit is -infinity; accepted: "));
}

TEST(SamplingText, SaysTheTieRule) {
  EXPECT_EQ(to_text(Sampling{}), "greedy (ties go to the lower index)");
  EXPECT_EQ(to_text(Sampling{.temperature = 0.7, .top_k = 50, .seed = 3}),
            "temperature 0.7, top-k 50, seed 3 (ties go to the lower index)");
  EXPECT_EQ(to_text(Sampling{.temperature = 0.7, .top_p = 0.95, .seed = 3}),
            "temperature 0.7, top-p 0.95, seed 3 (ties go to the lower index)");
}

}  // namespace
}  // namespace kvsim
