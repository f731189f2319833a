// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/model_places.h"
#include "model/checkpoint.h"
#include "model/model_store.h"
#include "run/run_loop.h"
#include "run/sim_engine.h"

/// A real model in bfloat16 under h100-fa3, cache-on against cache-off: tokens, digests and KL are
/// those of an earlier run of this very code. They say that nothing has changed, not that it is
/// right; what they are compared with is docs/findings.md. To make them anew where a change of bits
/// is meant: KVSIM_UPDATE_GOLDEN=1, run in the source folder.
namespace kvsim {
namespace {

using nlohmann::json;

constexpr const char* path = KVSIM_SOURCE_DIR "/tests/golden/models/smollm2-135m.h100-fa3.json";

json run_of(const json& prompts, Checkpoint checkpoint) {
  EngineOptions engine_options;
  engine_options.threads = 2;
  const auto engine = make_sim_engine(std::move(checkpoint), "smollm2-135m", engine_options);
  EXPECT_TRUE(engine) << engine.error().message;
  RunOptions options;
  for (const char* arm : {"on:dispatch=h100-fa3@on", "off:dispatch=h100-fa3@off"}) {
    options.arms.push_back(parse_arm(arm).value());
  }
  options.max_new_tokens = 8;
  options.teacher_forced = true;
  options.stops = false;
  std::vector<RunPrompt> list;
  for (const json& prompt : prompts) {
    list.push_back({std::ssize(list), prompt.at("ids").get<std::vector<TokenId>>()});
  }
  const auto run = PreparedRun::make(**engine, std::move(options), std::move(list));
  EXPECT_TRUE(run) << run.error().message;
  json result = prompts;
  for (json& prompt : result) {
    prompt["on"] = prompt["off"] = prompt["kl"] = json::array();
  }
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    if (const auto* step = std::get_if<StepRecord>(&line)) {
      result.at(static_cast<std::size_t>(step->prompt))[step->arm].push_back(
          {step->token, step->digests.token, step->digests.layer.back()});
    } else if (const auto* pair = std::get_if<ComparisonRecord>(&line)) {
      result.at(static_cast<std::size_t>(pair->prompt))["kl"].push_back(*pair->kl);
    }
    return true;
  };
  const auto summary = run->run(output);
  EXPECT_TRUE(summary) << summary.error().message;
  return result;
}

TEST(ModelDigests, AreThoseOfTheCommittedRun) {
  const auto folder = find_model("smollm2-135m", model_places());
  ASSERT_TRUE(folder) << folder.error().message;
  auto checkpoint = load_checkpoint(*folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  json golden = json::parse(file);
  ASSERT_EQ(checkpoint->identity(), golden.at("identity").get<std::string>());
  const json& expected = golden.at("prompts");
  const json found = run_of(expected, std::move(*checkpoint));
  if (std::getenv("KVSIM_UPDATE_GOLDEN") != nullptr) {
    golden["prompts"] = found;
    std::ofstream(path) << golden.dump(1) << '\n';
    return;
  }
  ASSERT_EQ(expected.size(), 2U);
  ASSERT_EQ(expected[0].at("on").size(), 8U);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // [token, digest of all logits, digest of the last hidden state]
    EXPECT_EQ(found[i].at("on"), expected[i].at("on")) << "prompt " << i;
    EXPECT_EQ(found[i].at("off"), expected[i].at("off")) << "prompt " << i;
    ASSERT_EQ(found[i].at("kl").size(), 8U);
    EXPECT_EQ(found[i].at("kl")[0].get<double>(), 0);  // the prompt's last row is the same
    for (std::size_t step = 0; step < 8; ++step) {
      const auto kl = expected[i].at("kl")[step].get<double>();
      EXPECT_NEAR(found[i].at("kl")[step].get<double>(), kl, 5e-4 * kl) << "step " << step;
    }
  }
}

}  // namespace
}  // namespace kvsim
