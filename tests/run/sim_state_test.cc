// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/run/engine_runs.h"
#include "tests/run/operator_values.h"
#include "tests/run/state_patches.h"

/// State of the simulator's sequences, read and replaced.
namespace kvsim {
namespace {

TEST(SimState, IsReplacedExactly) {
  for (const char* dispatch : {"h100-fa3", "torch-cpu", "fp32", "exact", "binary64"}) {
    const auto engine = test::engine_of("llama-llama3");
    const auto arm = engine->arm(std::vector<ArmSetting>{{"dispatch", dispatch}});
    ASSERT_TRUE(arm) << arm.error().message;
    test::check_state_patches(**arm);
  }
}

TEST(SimState, OperatorsHandBackTheLastRow) {
  for (const char* dispatch : {"h100-fa3", "fp32", "exact", "binary64"}) {
    const auto engine = test::engine_of("gemma2");
    const auto arm = engine->arm(std::vector<ArmSetting>{{"dispatch", dispatch}});
    ASSERT_TRUE(arm) << arm.error().message;
    for (const std::int64_t width : {1, 3}) test::check_operator_values(**arm, width);
  }
}

TEST(SimState, ScoresFollowTheModel) {
  const auto gemma = test::engine_of("gemma2");
  const auto llama = test::engine_of("llama-llama3");
  const ScoreRule rule = gemma->score_rule(0).value();
  EXPECT_GT(rule.soft_cap, 0);
  EXPECT_NE(rule.window > 0, gemma->score_rule(1).value().window > 0);
  EXPECT_EQ(llama->score_rule(0).value().soft_cap, 0);
  EXPECT_EQ(llama->score_rule(0).value().window, 0);
}

TEST(SimState, IsRefusedWhereItDoesNotFit) {
  const auto engine = test::engine_of("llama-llama3");
  const auto arm = engine->arm(std::vector<ArmSetting>{{"dispatch", "h100-fa3"}});
  ASSERT_TRUE(arm) << arm.error().message;
  test::check_refused_patches(**arm);
}

// Rows that an earlier pass from the start left are not taken for those of a new one.
TEST(SimState, ReplacedRowsAreComputedAnewFromTheStart) {
  const auto engine = test::engine_of("llama-llama3");
  const auto arm = engine->arm({});
  ASSERT_TRUE(arm);
  const std::vector<TokenId> tokens{17, 48, 48, 58, 66};
  const std::vector<TokenId> more{17, 48, 48, 58, 66, 49};
  const auto logits = [&](bool changed) {
    const auto sequence = (*arm)->open(32, {.prompt_tokens = 5});
    EXPECT_TRUE((*sequence)->pass(tokens, {0, 5, 0}, {}));
    const StateShape shape = (*sequence)->state_shape();
    const std::vector<double> zeros(static_cast<std::size_t>(shape.kv_heads * 5 * shape.head_dim));
    if (changed) {
      EXPECT_TRUE((*sequence)->set_state({0, KvPart::value, 0, 5}, zeros));
    }
    return (*sequence)->pass(more, {0, 6, 0}, {}).value().logits;
  };
  EXPECT_EQ(logits(true), logits(false));
}

TEST(SimState, OfAPaddedSequenceCountsItsOwnRows) {
  const auto engine = test::engine_of("llama-llama3");
  const auto arm = engine->arm({});
  ASSERT_TRUE(arm);
  const std::vector<TokenId> tokens{17, 48, 48, 58, 66};
  const Launch launch{.prompt_tokens = 5, .neighbours = {9}, .padding = Padding::left};
  const auto sequence = (*arm)->open(32, launch);
  const auto pass = (*sequence)->pass(tokens, {0, 5, 0}, {.state_values = true});
  ASSERT_TRUE(pass);
  const auto keys = (*sequence)->state({0, KvPart::key, 0, 5});
  ASSERT_TRUE(keys) << keys.error().message;
  const std::int64_t width = (*sequence)->state_shape().head_dim;
  for (const StateValues& row : pass->values) {
    if (row.layer != 0 || row.operation != "k") continue;
    const auto begin = keys->begin() + (row.head * 5 + row.position) * width;
    EXPECT_EQ(row.values, std::vector<double>(begin, begin + width));
  }
  EXPECT_FALSE((*sequence)->state({0, KvPart::key, 0, 6}));
}

}  // namespace
}  // namespace kvsim
