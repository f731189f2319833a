// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <vector>

#include "tests/gpu/torch_fixture.h"
#include "tests/run/decoder_fixture.h"
#include "tests/run/operator_values.h"
#include "tests/run/state_patches.h"

/// State of libtorch's sequences, read and replaced.
namespace kvsim::gpu {
namespace {

TEST(TorchState, IsReplacedExactly) {
  const auto engine = test::torch_engine(test::fixture_path("llama-llama3", ""), "llama-llama3");
  for (const char* storage : {"bfloat16", "binary16", "binary32", "binary64"}) {
    for (const char* attention : {"eager", "sdpa"}) {
      const auto arm =
          engine->arm(std::vector<ArmSetting>{{"attention", attention}, {"storage", storage}});
      ASSERT_TRUE(arm) << arm.error().message;
      test::check_state_patches(**arm);
    }
  }
}

TEST(TorchState, OperatorsHandBackTheLastRow) {
  for (const char* model : {"llama-llama3", "gemma3"}) {
    const auto engine = test::torch_engine(test::fixture_path(model, ""), model);
    const auto arm = engine->arm({});
    ASSERT_TRUE(arm) << arm.error().message;
    for (const std::int64_t width : {1, 3}) test::check_operator_values(**arm, width);
  }
}

// transformers copies keys and values for eager attention itself.
TEST(TorchState, RepeatedHeadsGiveTheSameLogits) {
  const auto engine = test::torch_engine(test::fixture_path("gemma3", ""), "gemma3");
  std::vector<std::vector<double>> logits;
  for (const char* heads : {"shared", "repeated"}) {
    const auto arm = engine->arm(std::vector<ArmSetting>{
        {"attention", "eager"}, {"kv-heads", heads}, {"storage", "binary64"}});
    ASSERT_TRUE(arm) << arm.error().message;
    const auto sequence = (*arm)->open(32, {.prompt_tokens = 5});
    const std::vector<TokenId> tokens{17, 48, 48, 58, 66};
    logits.push_back((*sequence)->pass(tokens, {0, 5, 0}, {}).value().logits);
  }
  for (std::size_t i = 0; i < logits[0].size(); ++i) EXPECT_NEAR(logits[0][i], logits[1][i], 1e-12);
}

TEST(TorchState, IsRefusedWhereItDoesNotFit) {
  const auto engine = test::torch_engine(test::fixture_path("llama-llama3", ""), "llama-llama3");
  const auto arm = engine->arm(std::vector<ArmSetting>{{"storage", "bfloat16"}});
  ASSERT_TRUE(arm) << arm.error().message;
  test::check_refused_patches(**arm);
}

}  // namespace
}  // namespace kvsim::gpu
