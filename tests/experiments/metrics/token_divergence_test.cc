// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/token_divergence.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kvsim::metrics {
namespace {

using Tokens = std::vector<std::int64_t>;

TEST(TokenDivergence, ByHand) {
  // Other tokens at 1 and, since the second has ended, at 3.
  EXPECT_EQ(token_divergence(Tokens{1, 2, 3, 4}, Tokens{1, 9, 3}),
            (TokenDivergence{1, 4, 3, 2, .5}));
  EXPECT_EQ(token_divergence(Tokens{8}, Tokens{9, 8}), (TokenDivergence{0, 1, 2, 2, 1}));
  EXPECT_EQ(token_divergence(Tokens{1, 2}, Tokens{1, 2}),
            (TokenDivergence{std::nullopt, 2, 2, 0, 0}));
}

TEST(TokenDivergence, TheBeginningOfATextDiffersWhereItEnds) {
  const TokenDivergence found = token_divergence(Tokens{7, 7}, Tokens{7, 7, 7, 7, 7, 7, 7, 7});
  EXPECT_EQ(found.flip_index, 2);
  EXPECT_EQ(found.share, .75);
  EXPECT_EQ(token_divergence(Tokens{}, Tokens{3}).flip_index, 0);
  EXPECT_EQ(token_divergence(Tokens{}, Tokens{}), TokenDivergence{});
}

}  // namespace
}  // namespace kvsim::metrics
