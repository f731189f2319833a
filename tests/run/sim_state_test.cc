// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

// A copy of the key and value head for every query head, with kernels that do not depend on how
// many heads or outputs there are: no bit changes.
TEST(SimState, RepeatedHeadsGiveTheSameBits) {
  for (const char* model : {"gemma2", "qwen2", "llama-llama3"}) {
    const auto engine = test::engine_of(model);
    std::vector<EnginePass> passes;
    std::vector<std::vector<double>> keys;
    std::vector<StateShape> shapes;
    for (const char* heads : {"shared", "repeated"}) {
      const auto arm = engine->arm(
          std::vector<ArmSetting>{{"dispatch", "batch-invariant"}, {"kv-heads", heads}});
      ASSERT_TRUE(arm) << arm.error().message;
      const auto sequence = (*arm)->open(32, {.prompt_tokens = 5});
      const std::vector<TokenId> tokens{17, 48, 48, 58, 66};
      passes.push_back((*sequence)->pass(tokens, {0, 5, 0}, {.layer_values = true}).value());
      shapes.push_back((*sequence)->state_shape());
      keys.push_back((*sequence)->state({1, KvPart::key, 0, 5}).value());
    }
    EXPECT_EQ(passes[0].logits, passes[1].logits) << model;
    ASSERT_GT(shapes[1].kv_heads, shapes[0].kv_heads);
    const std::int64_t group = shapes[1].kv_heads / shapes[0].kv_heads;
    const std::int64_t size = 5 * shapes[0].head_dim;
    for (std::int64_t head = 0; head < shapes[1].kv_heads; ++head) {
      EXPECT_TRUE(std::equal(keys[1].begin() + head * size, keys[1].begin() + (head + 1) * size,
                             keys[0].begin() + head / group * size));
    }
  }
  const auto refused =
      test::engine_of("qwen2")->arm(std::vector<ArmSetting>{{"kv-heads", "doubled"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "setting kv-heads is \"doubled\"; accepted: shared, repeated");
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
