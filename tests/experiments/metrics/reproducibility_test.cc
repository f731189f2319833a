// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/reproducibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

namespace kvsim::metrics {
namespace {

using testing::HasSubstr;
using Examples = std::vector<std::vector<ExampleRun>>;

// Two examples in three configurations.
const Examples by_hand = {
    {{{5, 6, 7}, {.9, .5, .3}, true},
     {{5, 6, 8, 9}, {.8, .5, .9, .9}, false},
     {{5, 6, 7}, {.7, .8, .1}, false}},
    {{{1, 2}, {.4, .2}, true}, {{1, 2}, {.4, .4}, true}, {{1, 2}, {.4, .6}, true}}};

TEST(Reproducibility, ByHand) {
  const Result<Reproducibility> found = reproducibility(by_hand);
  ASSERT_TRUE(found) << found.error().message;
  // Accuracies 1, ½, ½: mean 2/3, squares 1/9 + 1/36 + 1/36 = 1/6, over 2.
  EXPECT_NEAR(found->std_at_acc, std::sqrt(1.0 / 12), 1e-9);
  // Lengths 3, 4, 3: squares 1/9 + 4/9 + 1/9, over 2; the second example's do not differ.
  EXPECT_NEAR(found->avg_std_at_output_length, std::sqrt(1.0 / 3) / 2, 1e-9);
  ASSERT_EQ(found->div_index.size(), 2U);
  EXPECT_EQ(found->div_index[0], 2);
  EXPECT_EQ(found->div_index[1], std::nullopt);
  EXPECT_EQ(found->diverging_share, .5);
  // First example, positions 0 and 1: .9 .8 .7 deviate by .1, .5 .5 .8 by √.03. Second: 0 and .2.
  ASSERT_TRUE(found->avg_std_at_top1_prob);
  EXPECT_NEAR(*found->avg_std_at_top1_prob, ((.1 + std::sqrt(.03)) / 2 + .1) / 2, 1e-9);
}

TEST(Reproducibility, EqualOutputsDeviateByNothing) {
  const ExampleRun run{{1, 2, 3}, {.1, .7, .3}, true};
  const ExampleRun wrong{{4}, {.1}, false};
  const Result<Reproducibility> found =
      reproducibility(Examples{{run, run, run}, {wrong, wrong, wrong}, {run, run, run}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->std_at_acc, 0);
  EXPECT_EQ(found->avg_std_at_output_length, 0);
  EXPECT_EQ(found->diverging_share, 0);
  EXPECT_EQ(found->avg_std_at_top1_prob, 0);
}

TEST(Reproducibility, EndsAreTokensToo) {
  const ExampleRun shorter{{1, 2}, {.5, .5}, true};
  const ExampleRun longer{{1, 2, 3}, {.5, .5, .5}, true};
  EXPECT_EQ(reproducibility(Examples{{longer, longer, shorter}})->div_index[0], 2);
  // Nothing before position 0 to take probabilities of.
  const ExampleRun other{{3, 2}, {.5, .5}, true};
  const Result<Reproducibility> found = reproducibility(Examples{{shorter, other}});
  EXPECT_EQ(found->div_index[0], 0);
  EXPECT_EQ(found->avg_std_at_top1_prob, std::nullopt);
}

TEST(Reproducibility, SaysWhatItCannotTell) {
  const ExampleRun run{{1}, {.5}, true};
  EXPECT_EQ(reproducibility(Examples{}).error().kind, ErrorKind::cannot_tell);
  EXPECT_EQ(reproducibility(Examples{{run}}).error().kind, ErrorKind::cannot_tell);
  EXPECT_THAT(reproducibility(Examples{{run, run}, {run}}).error().message,
              HasSubstr("example 1 has 1 configurations"));
  EXPECT_THAT(reproducibility(Examples{{run, {{1}, {}, true}}}).error().message,
              HasSubstr("example 0: 1 tokens with 0 probabilities"));
  EXPECT_THAT(reproducibility(Examples{{run, {{1}, {1.5}, true}}}).error().message,
              HasSubstr("probability 1.5"));
}

}  // namespace
}  // namespace kvsim::metrics
