// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/run_loop.h"
#include "run/run_results.h"
#include "run/sim_engine.h"

/// Runs of the models of tests/golden/decoder on the simulator, arm against arm.
namespace kvsim::test {

inline std::unique_ptr<Engine> engine_of(std::string_view model, int threads = 1,
                                         CommonRows rows = CommonRows::kept) {
  Result<Checkpoint> checkpoint =
      load_checkpoint(std::string(KVSIM_SOURCE_DIR "/tests/golden/decoder/") + std::string(model));
  EXPECT_TRUE(checkpoint);
  EngineOptions options;
  options.threads = threads;
  Result<std::unique_ptr<Engine>> engine =
      make_sim_engine(std::move(*checkpoint), std::string(model), options, rows);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

inline const std::vector<TokenId> prompt{17, 48, 48, 58, 66, 49, 82, 76, 87, 71, 13, 79};

inline Arm arm_of(std::string_view text) {
  const Result<Arm> arm = parse_arm(text);
  EXPECT_TRUE(arm) << text;
  return arm ? *arm : Arm{};
}

/// The first arm against each other one; also all lines as text.
struct Comparison {
  std::vector<PairSummary> pairs;
  std::string lines;
};

inline Comparison compare(const Engine& engine, std::vector<std::string_view> arms,
                          const std::string& settings = "", Launch launch = {},
                          std::int64_t new_tokens = 4, bool forced = false) {
  RunOptions options;
  options.teacher_forced = forced;
  int number = 0;
  for (const std::string_view text : arms) {
    // "off" and "a=b" become "off:a=b".
    std::string whole(text);
    if (!settings.empty()) {
      whole += (whole.find(':') == std::string::npos ? ":" : ",") + settings;
    }
    options.arms.push_back(arm_of(whole));
    options.arms.back().label = std::to_string(number++);
  }
  options.max_new_tokens = new_tokens;
  options.launch = std::move(launch);
  options.state_digests = true;
  const Result<PreparedRun> run = PreparedRun::make(engine, std::move(options), {{0, prompt}});
  EXPECT_TRUE(run) << run.error().message;
  Comparison result;
  RunResults results;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    results.add(line);
    result.lines += to_line(line);
    return true;
  };
  const Result<RunSummary> summary = run->run(output);
  EXPECT_TRUE(summary) << summary.error().message;
  for (std::size_t arm = 1; arm < arms.size(); ++arm) {
    result.pairs.push_back(summarize_pair(results.prompts().front(), arm));
  }
  return result;
}

inline const std::vector<std::string_view> every_constructor{
    "live",       "token-wise",       "all-token-wise",  "one-shot",
    "chunked(5)", "aligned-chunk(4)", "prefix-hit(9,4)", "off"};

}  // namespace kvsim::test
