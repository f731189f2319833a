// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

constexpr auto always = [](std::int64_t) { return true; };

std::string state_after(const FlipScorer& scorer, std::int64_t runs, int threads,
                        std::uint64_t seed) {
  FlipSearch search(scorer, {.seed = seed, .islands = 3, .threads = threads});
  search.run(runs, always);
  EXPECT_EQ(search.runs(), runs);
  return search.state_text();
}

TEST(FlipSearch, DependsOnSeedAndRunsAlone) {
  for (const CaseShape& shape : {sum_shape(16, "sequential", "pairwise", softfloat::binary16),
                                 attention_shape(8, 300, "a100-fa2", 2)}) {
    const auto scorer = FlipScorer::make(shape);
    ASSERT_TRUE(scorer) << scorer.error().message;
    const std::int64_t runs = shape.kind == CaseKind::sum ? 1000 : 100;
    const std::string once = state_after(*scorer, runs, 1, 5);
    EXPECT_EQ(state_after(*scorer, runs, 2, 5), once);
    EXPECT_EQ(state_after(*scorer, runs, 7, 5), once);
    EXPECT_NE(state_after(*scorer, runs, 1, 6), once);
  }
}

TEST(FlipSearch, GoesOnWhereItsStateStopped) {
  const auto scorer =
      FlipScorer::make(sum_shape(12, "sequential", "pairwise", softfloat::binary16));
  ASSERT_TRUE(scorer);
  const std::string straight = state_after(*scorer, 2000, 2, 3);
  FlipSearch resumed(*scorer, {.seed = 3, .islands = 3, .threads = 1});
  const auto read = resumed.read_state(state_after(*scorer, 900, 1, 3));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(resumed.runs(), 900);
  resumed.run(2000, always);
  EXPECT_EQ(resumed.state_text(), straight);
}

TEST(FlipSearch, RefusesOtherStates) {
  const auto scorer =
      FlipScorer::make(sum_shape(12, "sequential", "pairwise", softfloat::binary16));
  const auto other = FlipScorer::make(sum_shape(12, "sequential", "reverse", softfloat::binary16));
  ASSERT_TRUE(scorer);
  ASSERT_TRUE(other);
  const std::string state = state_after(*scorer, 60, 1, 3);
  FlipSearch another_seed(*scorer, {.seed = 4, .islands = 3});
  EXPECT_NE(another_seed.read_state(state).error().message.find("another seed"), std::string::npos);
  FlipSearch more_islands(*scorer, {.seed = 3, .islands = 4});
  EXPECT_NE(more_islands.read_state(state).error().message.find("another number of islands"),
            std::string::npos);
  FlipSearch another_shape(*other, {.seed = 3, .islands = 3});
  EXPECT_NE(another_shape.read_state(state).error().message.find("another target, shape"),
            std::string::npos);
  FlipSearch same(*scorer, {.seed = 3, .islands = 3});
  for (const std::string& text : {std::string(), std::string("kvsim flip search 1 3 -1\n"),
                                  state + "more", state.substr(0, state.size() / 2), "x" + state}) {
    EXPECT_FALSE(same.read_state(text));
  }
  EXPECT_TRUE(same.read_state(state));
}

// In binary16 a run of half ulps vanishes in sequence and counts in pairs: a search must find that,
// and go beyond what random numbers reach.
TEST(FlipSearch, FindsFlipsOfSums) {
  const auto scorer =
      FlipScorer::make(sum_shape(16, "sequential", "pairwise", softfloat::binary16));
  ASSERT_TRUE(scorer);
  FlipSearch search(*scorer, {.seed = 0, .islands = 4, .threads = 2});
  search.run(4000, always);
  const auto found = search.confirmed();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->confirmation.flips());
  const FlipScore& score = found->find.scored.score;
  EXPECT_GT(score.ratio(), 0.3);
  EXPECT_GT(score.ratio(), 4 * search.baseline().best_value);
  // What MPFR encloses is what the double-double reference says.
  EXPECT_NEAR(found->confirmation.margin(), score.margin(), 1e-12 * score.margin());
  for (const std::vector<float>& tensor : found->find.scored.flip_case.tensors) {
    for (const float x : tensor) {
      EXPECT_LE(std::abs(x), 10.8515625F);
      EXPECT_TRUE(x == 0 || std::abs(x) >= 0x1p-14F);
    }
  }
}

TEST(FlipSearch, FindsFlipsOfAttention) {
  const auto scorer = FlipScorer::make(attention_shape(16, 300, "a100-fa2", 2));
  ASSERT_TRUE(scorer) << scorer.error().message;
  FlipSearch search(*scorer, {.seed = 0, .islands = 2, .threads = 2});
  search.run(200, always);
  const auto found = search.confirmed();
  ASSERT_TRUE(found);
  EXPECT_GT(found->find.scored.score.ratio(), 0.01);
}

}  // namespace
}  // namespace kvsim::fuzz
