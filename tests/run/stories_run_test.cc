// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// stories260K, a llama2.c model in float32, as a run: the greedy text that numpy computed in about
// float64.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "run/run_loop.h"
#include "run/sim_engine.h"

namespace kvsim {
namespace {

/// The tokens of each arm after BOS, by label; nothing where the run fails.
std::map<std::string, std::vector<std::int64_t>> tokens_of(const std::string& folder,
                                                           std::vector<std::string> arms,
                                                           std::int64_t count) {
  std::map<std::string, std::vector<std::int64_t>> tokens;
  Result<Checkpoint> checkpoint = load_checkpoint(folder + "/stories260K.bin");
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  if (!checkpoint) return tokens;
  const Result<std::unique_ptr<Engine>> engine =
      make_sim_engine(std::move(*checkpoint), "stories260K", {});
  EXPECT_TRUE(engine);
  RunOptions options;
  for (const std::string& arm : arms) options.arms.push_back(*parse_arm(arm));
  options.max_new_tokens = count;
  options.stops = false;
  const Result<PreparedRun> run = PreparedRun::make(**engine, options, {{0, {1}}});
  EXPECT_TRUE(run) << run.error().message;
  if (!run) return tokens;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    const auto* step = std::get_if<StepRecord>(&line);
    if (step != nullptr) tokens[step->arm].push_back(step->token);
    return true;
  };
  const Result<RunSummary> summary = run->run(output);
  EXPECT_TRUE(summary) << summary.error().message;
  return tokens;
}

TEST(StoriesRun, WritesTheGreedyText) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const std::string folder = std::string(shared) + "/data/stories260K";
  std::ifstream file(folder + "/greedy.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto expected = golden.at("ids").get<std::vector<std::int64_t>>();
  ASSERT_GT(expected.size(), 200U);
  const auto count = static_cast<std::int64_t>(expected.size());
  EXPECT_EQ(tokens_of(folder, {"live@fp32"}, count).at("fp32"), expected);
}

}  // namespace
}  // namespace kvsim
