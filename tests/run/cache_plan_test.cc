// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Plans written by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run/arm.h"

namespace kvsim {
namespace {

using testing::HasSubstr;
using Steps = std::vector<PlanStep>;

Steps plan(std::string_view arm, std::int64_t prompt, std::int64_t generated) {
  return *cache_plan(*parse_arm(arm), prompt, generated);
}

Steps next(std::string_view arm, std::int64_t prompt, std::int64_t generated) {
  return *next_passes(*parse_arm(arm), prompt, generated);
}

TEST(CachePlan, OfEachConstructor) {
  const Steps live{{0, 5, 0}, {5, 1, 5}, {6, 1, 6}, {7, 1, 7}};
  EXPECT_EQ(plan("live", 5, 3), live);
  EXPECT_EQ(plan("token-wise", 5, 3), live);
  EXPECT_EQ(plan("live", 5, 0), (Steps{{0, 5, 0}}));
  EXPECT_EQ(plan("all-token-wise", 2, 2), (Steps{{0, 1, 0}, {1, 1, 1}, {2, 1, 2}, {3, 1, 3}}));
  EXPECT_EQ(plan("one-shot", 5, 3), (Steps{{0, 8, 0}}));
  EXPECT_EQ(plan("off", 5, 3), (Steps{{0, 5, 0}, {0, 6, 0}, {0, 7, 0}, {0, 8, 0}}));
}

TEST(CachePlan, OfChunks) {
  EXPECT_EQ(plan("chunked(4)", 10, 3),
            (Steps{{0, 4, 0}, {4, 4, 4}, {8, 2, 8}, {10, 1, 10}, {11, 1, 11}, {12, 1, 12}}));
  EXPECT_EQ(plan("chunked(5)", 10, 0), (Steps{{0, 5, 0}, {5, 5, 5}}));
  EXPECT_EQ(plan("chunked(64)", 10, 1), (Steps{{0, 10, 0}, {10, 1, 10}}));
  EXPECT_EQ(plan("aligned-chunk(4)", 10, 3), (Steps{{0, 4, 0}, {4, 4, 4}, {8, 4, 8}, {12, 1, 12}}));
  EXPECT_EQ(plan("aligned-chunk(4)", 10, 1), (Steps{{0, 4, 0}, {4, 4, 4}, {8, 3, 8}}));
}

TEST(CachePlan, OfAPrefixHit) {
  // 11 tokens of the earlier prompt, of which two blocks of 4 are kept.
  EXPECT_EQ(plan("prefix-hit(11,4)", 14, 1), (Steps{{0, 11, 0}, {8, 6, 8}, {14, 1, 14}}));
  // At the block's edge all 12 are kept.
  EXPECT_EQ(plan("prefix-hit(12,4)", 14, 0), (Steps{{0, 12, 0}, {12, 2, 12}}));
  // The whole prompt was there: its last block is computed again, since the last token must be.
  EXPECT_EQ(plan("prefix-hit(12,4)", 12, 0), (Steps{{0, 12, 0}, {8, 4, 8}}));
  // Less than one block: no hit.
  EXPECT_EQ(plan("prefix-hit(3,4)", 14, 1), (Steps{{0, 14, 0}, {14, 1, 14}}));
}

TEST(NextPasses, OfEachConstructor) {
  for (const char* arm : {"live", "all-token-wise", "one-shot", "chunked(4)", "prefix-hit(3,2)"}) {
    EXPECT_EQ(next(arm, 5, 3), (Steps{{8, 1, 8}})) << arm;
  }
  EXPECT_EQ(next("token-wise", 5, 1), (Steps{{0, 5, 0}, {5, 1, 5}, {6, 1, 6}}));
  EXPECT_EQ(next("off", 5, 3), (Steps{{0, 9, 0}}));
  EXPECT_EQ(next("aligned-chunk(4)", 5, 3), (Steps{{8, 1, 8}}));
  EXPECT_EQ(next("aligned-chunk(4)", 5, 4), (Steps{{8, 2, 8}}));
  EXPECT_EQ(next("aligned-chunk(4)", 5, 6), (Steps{{8, 4, 8}}));
}

// Carried out on a cache that remembers which pass computed each row, the passes after m tokens
// leave behind what the plan over m + 1 tokens does, but for one-shot, which changes over.
TEST(NextPasses, LeadToThePlanOfOneMoreToken) {
  struct Origin {
    std::int64_t first;
    std::int64_t rows;
    bool operator==(const Origin&) const = default;
  };
  const auto carry_out = [](const Steps& steps, std::vector<Origin>& cache) {
    for (const PlanStep& step : steps) {
      EXPECT_LE(step.cached_rows, static_cast<std::int64_t>(cache.size()));
      cache.resize(static_cast<std::size_t>(step.cached_rows));
      EXPECT_EQ(step.first_row, step.cached_rows);
      cache.resize(cache.size() + static_cast<std::size_t>(step.rows),
                   Origin{step.first_row, step.rows});
    }
  };
  for (const char* arm : {"live", "token-wise", "all-token-wise", "chunked(3)", "aligned-chunk(3)",
                          "prefix-hit(5,2)", "off"}) {
    for (std::int64_t generated = 0; generated < 7; ++generated) {
      std::vector<Origin> stepwise;
      carry_out(plan(arm, 7, generated), stepwise);
      carry_out(next(arm, 7, generated), stepwise);
      std::vector<Origin> whole;
      carry_out(plan(arm, 7, generated + 1), whole);
      EXPECT_EQ(stepwise, whole) << arm << " " << generated;
      EXPECT_EQ(whole.size(), static_cast<std::size_t>(8 + generated));
    }
  }
}

TEST(CachePlan, SaysWhatIsWrong) {
  const auto message = [](std::string_view arm, std::int64_t prompt, std::int64_t generated) {
    const auto result = cache_plan(*parse_arm(arm), prompt, generated);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(message("live", 0, 3), HasSubstr("0 prompt tokens; accepted: from 1"));
  EXPECT_THAT(message("live", 3, -1), HasSubstr("-1 generated tokens after 3 of the prompt; acc"));
  EXPECT_THAT(message("prefix-hit(9,2)", 8, 1),
              HasSubstr("arm prefix-hit(9,2): a prefix of 9 tokens of a prompt of 8; accepted: "));
  EXPECT_THAT(message("all-token-wise", 1 << 25, 0), HasSubstr("passes; accepted: at most"));
  EXPECT_FALSE(next_passes(*parse_arm("off"), 0, 0));
}

}  // namespace
}  // namespace kvsim
