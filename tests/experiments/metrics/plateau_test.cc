// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/plateau.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kvsim::metrics {
namespace {

using testing::HasSubstr;
using Lists = std::vector<std::vector<double>>;

TEST(UnrelatedPartners, AreOneCycle) {
  for (std::int64_t prompts = 2; prompts <= 40; ++prompts) {
    const auto partners = unrelated_partners(prompts, static_cast<std::uint64_t>(prompts));
    ASSERT_TRUE(partners);
    ASSERT_EQ(partners->size(), static_cast<std::size_t>(prompts));
    std::int64_t at = 0;
    for (std::int64_t step = 1; step < prompts; ++step) {
      at = (*partners)[static_cast<std::size_t>(at)];
      EXPECT_NE(at, 0) << "back after " << step << " of " << prompts;
    }
    EXPECT_EQ((*partners)[static_cast<std::size_t>(at)], 0);
  }
}

// Of four prompts there are 3! cycles, all of them equally likely.
TEST(UnrelatedPartners, AreEven) {
  std::vector<std::pair<std::vector<std::int64_t>, int>> seen;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::vector<std::int64_t> partners = *unrelated_partners(4, seed);
    bool known = false;
    for (auto& [cycle, count] : seen) {
      if (cycle != partners) continue;
      ++count;
      known = true;
    }
    if (!known) seen.emplace_back(partners, 1);
  }
  ASSERT_EQ(seen.size(), 6U);
  for (const auto& [cycle, count] : seen) EXPECT_NEAR(count, 1000, 130);  // 4.5 deviations
}

TEST(Plateau, MeansByHand) {
  // 24 steps ÷ 3 after flips, 30 ÷ 5 of unrelated pairs.
  const Lists after_flip = {{9, 7}, {}, {8}};
  const Lists unrelated = {{6}, {4, 8}, {5, 7}};
  const Result<PlateauComparison> found = compare_with_plateau(after_flip, unrelated, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->after_flip.percentile.value, 8);
  EXPECT_EQ(found->unrelated.percentile.value, 6);
  EXPECT_NEAR(found->ratio.percentile.value, 8.0 / 6, 1e-8);
  // Every draw has the same means, whichever prompts it holds.
  EXPECT_EQ(found->after_flip.percentile.low, 8);
  EXPECT_EQ(found->unrelated.percentile.high, 6);
  EXPECT_EQ(found->ratio.standard_error, 0);
  // All three draws are of the second prompt once in 27 times.
  EXPECT_NEAR(static_cast<double>(found->after_flip.undefined), 10000.0 / 27, 60);
  EXPECT_EQ(found->ratio.undefined, found->after_flip.undefined);
  EXPECT_EQ(found->unrelated.undefined, 0);
}

// A prompt with large divergences has them in both lists, so the ratio varies less than either
// mean.
TEST(Plateau, RatiosAreDrawnWithTheSamePrompts) {
  const Lists after_flip = {{2, 2}, {20, 20}, {200, 200}, {2000, 2000}};
  const Lists unrelated = {{1}, {10}, {100}, {1000}};
  const Result<PlateauComparison> found = compare_with_plateau(after_flip, unrelated, {});
  ASSERT_TRUE(found);
  EXPECT_GT(found->after_flip.standard_error, 100);
  EXPECT_EQ(found->ratio.percentile, (statistics::Estimate{2, 2, 2}));
}

TEST(Plateau, SaysWhatItCannotTell) {
  EXPECT_EQ(unrelated_partners(1, 1).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(unrelated_partners(std::int64_t{1} << 31, 1).error().kind, ErrorKind::usage);
  const Lists two = {{1}, {2}};
  const auto message = [&](const Lists& after, const Lists& unrelated) {
    return compare_with_plateau(after, unrelated, {}).error().message;
  };
  EXPECT_THAT(message(two, {{1}}), HasSubstr("2 prompts after flips and 1"));
  EXPECT_THAT(message({{}, {}}, two),
              HasSubstr("after flips: a bootstrap of a figure that is nan"));
  EXPECT_THAT(message(two, {{}, {}}), HasSubstr("unrelated pairs: "));
  EXPECT_THAT(message(two, {{1}, {-1}}), HasSubstr("unrelated pairs: divergence -1 of prompt 1"));
  EXPECT_THAT(message({{1}, {std::numeric_limits<double>::infinity()}}, two),
              HasSubstr("after flips: divergence inf of prompt 1"));
}

}  // namespace
}  // namespace kvsim::metrics
