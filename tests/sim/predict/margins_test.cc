// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/margins.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvsim {
namespace {

TEST(Margins, BinsByHand) {
  // Two bins for each power of two: [2^-10, 2^-9.5), [2^-9.5, 2^-9), …
  const std::vector<MarginBin> bins =
      bin_margins(std::vector<double>{0, 0.0009, 0x1p-10, 0.0013, 0.0015});
  ASSERT_EQ(bins.size(), 3U);
  EXPECT_EQ(bins[0], (MarginBin{0, 0x1p-10, 2}));
  EXPECT_EQ(bins[1].count, 2);
  EXPECT_NEAR(bins[1].to, std::pow(2.0, -9.5), 1e-15);
  EXPECT_EQ(bins[2].from, bins[1].to);
  EXPECT_EQ(bins[2].to, 0x1p-9);
  EXPECT_EQ(bins[2].count, 1);
  EXPECT_TRUE(bin_margins({}).empty());
}

TEST(Margins, TheBuiltInHistogramIsWhole) {
  const MarginHistogram& built_in = built_in_margins();
  EXPECT_EQ(built_in.tokens(), 3816);
  ASSERT_FALSE(built_in.bins.empty());
  EXPECT_EQ(built_in.bins.front().from, 0);
  EXPECT_EQ(built_in.bins.back().to, 16);
  for (std::size_t i = 1; i < built_in.bins.size(); ++i) {
    EXPECT_EQ(built_in.bins[i].from, built_in.bins[i - 1].to);
  }
}

// The row is what the measured margins give.
TEST(Margins, TheBuiltInHistogramIsThatOfTheData) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  std::ifstream file(std::string(shared) + "/data/margins/smollm2-gsm8k.json");
  ASSERT_TRUE(file);
  const nlohmann::json data = nlohmann::json::parse(file);
  std::vector<double> margins;
  std::vector<double> tops;
  for (const auto& prompt : data.at("prompts")) {
    for (const auto& token : prompt) {
      tops.push_back(token.at(0).get<double>());
      margins.push_back(token.at(1).get<double>());
    }
  }
  EXPECT_EQ(bin_margins(margins), built_in_margins().bins);
  std::sort(tops.begin(), tops.end());
  EXPECT_NEAR(built_in_margins().top_logit, tops[tops.size() / 2], 1e-4);
}

}  // namespace
}  // namespace kvsim
