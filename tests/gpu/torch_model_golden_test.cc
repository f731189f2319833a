// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_places.h"
#include "model/model_store.h"
#include "tests/gpu/torch_fixture.h"
#include "tests/run/decoder_fixture.h"

/// libtorch's decoder in float32 against the greedy texts that transformers wrote with the model
/// KVSIM_GOLDEN_MODEL (scripts/make_model_goldens.py; on any CPU).
namespace kvsim::gpu {
namespace {

TEST(TorchModelGolden, HasTheTokensOfTransformers) {
  constexpr double close = 2e-4;
  const auto folder = find_model(KVSIM_GOLDEN_MODEL, model_places());
  ASSERT_TRUE(folder) << folder.error().message;
  const nlohmann::json golden =
      test::read_json(KVSIM_SOURCE_DIR "/tests/golden/models/" KVSIM_GOLDEN_MODEL ".json");
  const auto engine = test::torch_engine(*folder, KVSIM_GOLDEN_MODEL);
  ASSERT_EQ(engine->model_sha256(), golden.at("identity").get<std::string>());
  const auto arm = engine->arm(std::vector<ArmSetting>{{"storage", "binary32"}});
  ASSERT_TRUE(arm) << arm.error().message;
  double largest = 0;
  int compared = 0;
  int too_close = 0;
  for (const auto& prompt : golden.at("prompts")) {
    auto tokens = prompt.at("ids").get<std::vector<TokenId>>();
    const auto sequence = (*arm)->open(std::ssize(tokens) + 8, {});
    ASSERT_TRUE(sequence) << sequence.error().message;
    std::int64_t cached = 0;
    for (const auto& step : prompt.at("steps")) {
      const auto pass =
          (*sequence)->pass(tokens, {cached, std::ssize(tokens) - cached, cached}, {});
      ASSERT_TRUE(pass) << pass.error().message;
      cached = std::ssize(tokens);
      if (step.contains("top")) {
        for (const auto& row : step.at("top")) {
          const double found = pass->logits.at(row.at(0).get<std::size_t>());
          largest = std::max(largest, std::fabs(found - row.at(1).get<double>()));
        }
      }
      const auto best = std::ranges::max_element(pass->logits) - pass->logits.begin();
      const auto token = step.at("token").get<TokenId>();
      if (step.at("margin").get<double>() > 2 * close) {
        EXPECT_EQ(best, token);
        ++compared;
      } else {
        ++too_close;
      }
      tokens.push_back(token);
    }
  }
  fmt::print("{}: largest difference {:.2g}, {} tokens compared\n", KVSIM_GOLDEN_MODEL, largest,
             compared);
  EXPECT_LT(largest, close);
  EXPECT_EQ(too_close, 0) << "steps whose margin decides nothing";
  EXPECT_GE(compared, 20 * 16);
}

}  // namespace
}  // namespace kvsim::gpu
