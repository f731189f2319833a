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

TEST(TorchState, IsRefusedWhereItDoesNotFit) {
  const auto engine = test::torch_engine(test::fixture_path("llama-llama3", ""), "llama-llama3");
  const auto arm = engine->arm(std::vector<ArmSetting>{{"storage", "bfloat16"}});
  ASSERT_TRUE(arm) << arm.error().message;
  test::check_refused_patches(**arm);
}

}  // namespace
}  // namespace kvsim::gpu
