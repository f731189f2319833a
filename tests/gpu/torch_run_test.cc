// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/torch_rope.h"
#include "run/model_shape.h"
#include "run/record_reader.h"
#include "run/run_loop.h"
#include "run/sim_engine.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"
#include "tests/gpu/torch_fixture.h"
#ifdef KVSIM_GOLDEN_MODEL
#include "cli/model_places.h"
#include "model/model_store.h"
#endif

/// Whole runs, arm against arm, on libtorch under the pinned setting and in the simulator under the
/// dispatch torch-cpu-avx2 with libtorch's RoPE factors: the same lines.
namespace kvsim::gpu {
namespace {

#ifdef KVSIM_GOLDEN_MODEL
constexpr std::string_view model = KVSIM_GOLDEN_MODEL;
constexpr std::int64_t new_tokens = 3;
const std::vector<std::string_view> constructors{"live", "off"};

std::string folder() {
  const auto found = find_model(model, model_places());
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : std::string();
}
#else
constexpr std::string_view model = "kv-tiny";
constexpr std::int64_t new_tokens = 12;
const std::vector<std::string_view> constructors{"live",
                                                 "off",
                                                 "token-wise",
                                                 "chunked(7)",
                                                 "aligned-chunk(8)",
                                                 "prefix-hit(16,8)",
                                                 "live:verify-width=3"};

std::string folder() { return KVSIM_SOURCE_DIR "/data/kv-tiny"; }
#endif

std::unique_ptr<Engine> sim_engine() {
  Result<Checkpoint> checkpoint = load_checkpoint(folder());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  auto engine = make_sim_engine(std::move(*checkpoint), std::string(model), {}, CommonRows::kept,
                                {torch_rope_origin()});
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

/// The lines of a run of one prompt; `settings` come behind each constructor. Head lines, which
/// name engine and kernels, are left out.
std::vector<std::string> lines_of(const Engine& engine, const std::string& settings,
                                  const std::vector<std::string_view>& arms) {
  RunOptions options;
  for (const std::string_view arm : arms) {
    std::string text(arm);
    text += (text.find(':') == std::string::npos ? ":" : ",") + settings;
    auto parsed = parse_arm(text);
    EXPECT_TRUE(parsed) << text;
    options.arms.push_back(std::move(*parsed));
    options.arms.back().label = fmt::format("{}", options.arms.size());
  }
  options.max_new_tokens = new_tokens;
  options.state_digests = true;
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 30; ++i) ids.push_back((i * i * 7 + 3 * i + 11) % 600);
  const auto run = PreparedRun::make(engine, std::move(options), {{0, ids}});
  EXPECT_TRUE(run) << run.error().message;
  std::vector<std::string> lines;
  if (!run) return lines;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    if (!std::holds_alternative<PromptRecord>(line)) lines.push_back(to_line(line));
    return true;
  };
  const auto summary = run->run(output);
  EXPECT_TRUE(summary) << summary.error().message;
  return lines;
}

std::string sim_settings(std::string_view storage, std::string_view rope = "torch-cpu") {
  return fmt::format("dispatch=torch-cpu-avx2,rope={},storage={},weights={}", rope, storage,
                     storage);
}

TEST(TorchRun, HasTheLinesOfTheSimulator) {
  const auto torch = test::torch_engine(folder(), model);
  const auto sim = sim_engine();
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  for (const char* const storage : {"binary32", "bfloat16"}) {
    const auto seen = lines_of(*torch, fmt::format("storage={}", storage), constructors);
    const auto simulated = lines_of(*sim, sim_settings(storage), constructors);
    // A line of each arm and step, and one of each pair and step.
    const auto arms = std::ssize(constructors);
    ASSERT_EQ(std::ssize(seen), new_tokens * (2 * arms - 1));
    EXPECT_TRUE(seen == simulated) << storage;
    const auto digests = std::ranges::count_if(seen, [](const std::string& line) {
      return line.find("\"state\":[{") != std::string::npos &&
             line.find("\"layer\":[\"") != std::string::npos;
    });
    EXPECT_EQ(digests, new_tokens * arms);
    // The arms differ, so that equal comparisons say something.
    EXPECT_TRUE(std::ranges::any_of(seen, [](const std::string& line) {
      return line.find("\"kind\":\"comparison\"") != std::string::npos &&
             line.find("\"differing_logits\":0,") == std::string::npos;
    }));
    fmt::print("{} {}: {} lines of {} arms\n", model, storage, seen.size(), arms);
  }
}

#ifndef KVSIM_GOLDEN_MODEL
TEST(TorchRun, HasOtherLinesThanTheSimulatorWithAKernelsRope) {
  const auto torch = test::torch_engine(folder(), model);
  const auto sim = sim_engine();
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  EXPECT_FALSE(lines_of(*torch, "storage=binary32", {"live"}) ==
               lines_of(*sim, sim_settings("binary32", "transformers-rope"), {"live"}));
}

// The records that README.md compares: what both engines wrote on a CPU of the first known key.
TEST(TorchRun, WritesTheRecordsThatTheReadmeCompares) {
  const auto torch = test::torch_engine(folder(), model);
  const auto sim = sim_engine();
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  for (const auto& [engine, file] :
       {std::pair<const Engine*, std::string>{torch.get(), "/tests/golden/gpu/run-torch-cpu.jsonl"},
        {sim.get(), "/tests/golden/gpu/run-sim.jsonl"}}) {
    const auto golden = read_records(KVSIM_SOURCE_DIR + file);
    ASSERT_TRUE(golden) << golden.error().message;
    ASSERT_EQ(golden->prompts.size(), 1U);
    const PromptRecord& head = golden->prompts.front();
    RunOptions options;
    options.version = head.run.version;
    options.max_new_tokens = head.run.max_new_tokens;
    for (const RecordArm& arm : head.run.arms) {
      options.arms.push_back(parse_arm(arm.text).value());
      options.arms.back().label = arm.label;
    }
    std::vector<TokenId> ids(head.prompt_ids.begin(), head.prompt_ids.end());
    const auto run = PreparedRun::make(*engine, std::move(options), {{0, std::move(ids)}});
    ASSERT_TRUE(run) << run.error().message;
    std::string lines;
    RunOutput output;
    output.line = [&](const RecordLine& line) -> Result<bool> {
      lines += to_line(line);
      return true;
    };
    ASSERT_TRUE(run->run(output));
    std::ifstream stream(KVSIM_SOURCE_DIR + file);
    std::ostringstream text;
    text << stream.rdbuf();
    EXPECT_TRUE(lines == text.str()) << file;
  }
}
#endif

// A record says where the factors came from, and a table's rows are a function of the position.
TEST(TorchRope, IsNamedAndDoesNotDependOnTheLengthOfTheTable) {
  ASSERT_NE(test::torch_backend(), nullptr);
  const auto sim = sim_engine();
  const std::vector<ArmSetting> settings{{"dispatch", "torch-cpu-avx2"}, {"rope", "torch-cpu"}};
  const auto arm = sim->arm(settings);
  ASSERT_TRUE(arm) << arm.error().message;
  EXPECT_EQ((*arm)->dispatch(), "cpu-avx2+rope=torch-cpu+setting=pinned");
  const auto checkpoint = load_checkpoint(folder());
  ASSERT_TRUE(checkpoint);
  for (const auto& storage : {softfloat::binary32, softfloat::bfloat16, softfloat::binary16}) {
    const auto source = torch_rope_source(checkpoint->config(), storage);
    ASSERT_TRUE(source) << source.error().message;
    const auto longest = (*source)(false, 700);
    ASSERT_TRUE(longest);
    EXPECT_EQ(longest->positions, 700);
    for (const std::int64_t positions : {1, 2, 3, 65, 300, 511}) {
      const auto table = (*source)(false, positions);
      ASSERT_TRUE(table);
      ASSERT_EQ(std::ssize(table->cosine), positions * table->pairs);
      EXPECT_TRUE(std::ranges::equal(table->cosine,
                                     std::span(longest->cosine).first(table->cosine.size())));
      EXPECT_TRUE(
          std::ranges::equal(table->sine, std::span(longest->sine).first(table->sine.size())));
    }
  }
  // A shape says as much about RoPE as a configuration.
  for (const BuiltInModel& row : built_in_models()) {
    const ModelConfig config = built_in_config(row.name).value();
    const auto by_config = torch_rope_source(config, softfloat::binary32);
    const auto by_shape = torch_rope_source(decoder_shape(config).value(), softfloat::binary32);
    ASSERT_TRUE(by_config && by_shape);
    for (const bool windowed : {false, true}) {
      EXPECT_TRUE((*by_config)(windowed, 40)->cosine == (*by_shape)(windowed, 40)->cosine)
          << row.name;
    }
  }
  const auto refused = torch_rope_source(checkpoint->config(), softfloat::e5m2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "RoPE factors of torch-cpu in e5m2; accepted: bfloat16, binary16 or binary32");
}

}  // namespace
}  // namespace kvsim::gpu
