// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/operators/rope.h"
#include "softfloat/formats.h"
#include "tests/run/engine_runs.h"

/// The simulator with RoPE factors that are given to it.
namespace kvsim {
namespace {

using testing::HasSubstr;

using namespace test;

/// As tests/golden/decoder/mistral has it: no scaling, half-split pairs.
Result<RopeTable> kernel_table(const ModelConfig& config, const softfloat::Format& storage,
                               std::int64_t positions) {
  return make_rope_table(*find_rope_kernel("transformers-rope"), {.storage = storage,
                                                                  .rotated = config.head_dim,
                                                                  .base = config.rope_base,
                                                                  .positions = positions});
}

/// "same" has the factors of the kernel, "turned" those of the next position; "none" is not here.
std::vector<RopeOrigin> origins() {
  const auto same = [](const ModelConfig& config, const softfloat::Format& storage) {
    return Result<RopeSource>([config, storage](bool, std::int64_t positions) {
      Result<RopeTable> table = kernel_table(config, storage, positions);
      table->angle.clear();
      return table;
    });
  };
  const auto turned = [](const ModelConfig& config, const softfloat::Format& storage) {
    return Result<RopeSource>([config, storage](bool, std::int64_t positions) {
      Result<RopeTable> table = kernel_table(config, storage, positions + 1);
      --table->positions;
      for (const auto field : {&RopeTable::cosine, &RopeTable::sine}) {
        (*table.*field).erase((*table.*field).begin(), (*table.*field).begin() + table->pairs);
      }
      return table;
    });
  };
  const auto none = [](const ModelConfig&, const softfloat::Format&) -> Result<RopeSource> {
    return Error{ErrorKind::unavailable, "rope=none: not here"};
  };
  return {{"same", "", same}, {"turned", "setting=sideways", turned}, {"none", "", none}};
}

std::unique_ptr<Engine> engine_with_origins() {
  Result<Checkpoint> checkpoint = load_checkpoint(KVSIM_SOURCE_DIR "/tests/golden/decoder/mistral");
  EXPECT_TRUE(checkpoint);
  auto engine = make_sim_engine(std::move(*checkpoint), "mistral", {}, CommonRows::kept, origins());
  EXPECT_TRUE(engine);
  return std::move(*engine);
}

Result<std::unique_ptr<EngineArm>> arm_with(const Engine& engine,
                                            std::initializer_list<ArmSetting> settings) {
  return engine.arm(std::vector<ArmSetting>(settings));
}

TEST(RopeOrigin, GivesTheBitsOfTheKernelWithItsFactorsAndOthersWithOthers) {
  const auto engine = engine_with_origins();
  const std::string settings = "dispatch=torch-cpu-avx2,storage=binary32,weights=binary32";
  const Comparison run = compare(*engine,
                                 {"live:rope=transformers-rope", "live:rope=same", "off:rope=same",
                                  "off", "live:rope=turned", "off:rope=turned"},
                                 settings, {}, 8, true);
  ASSERT_EQ(run.pairs.size(), 5U);
  EXPECT_EQ(run.pairs[0].equal_steps, 8);
  EXPECT_EQ(run.pairs[1].equal_steps, run.pairs[2].equal_steps);
  EXPECT_EQ(run.pairs[1].largest_kl, run.pairs[2].largest_kl);
  // Attention sees differences of positions alone, but rounding sees positions.
  EXPECT_EQ(run.pairs[3].equal_steps, 0);
  EXPECT_EQ(run.pairs[4].equal_steps, 0);
  EXPECT_LT(run.pairs[3].largest_kl, 1e-8);
}

TEST(RopeOrigin, IsNamedByTheArmAndByItsExplanation) {
  const auto engine = engine_with_origins();
  const auto arm =
      arm_with(*engine, {{"dispatch", "torch-cpu"}, {"rope", "turned"}, {"storage", "fp32"}});
  ASSERT_TRUE(arm) << arm.error().message;
  EXPECT_EQ((*arm)->dispatch(), "cpu+rope=turned+setting=sideways+format.activations=fp32");
  const auto lines = (*arm)->explain({0, 12, 0}, {.prompt_tokens = 12});
  ASSERT_TRUE(lines);
  EXPECT_EQ(std::ranges::count(*lines, "rope=turned", &ExplainedOperator::setting), 1);
  EXPECT_EQ(std::ranges::count(*lines, "rope=transformers-rope", &ExplainedOperator::setting), 0);
  EXPECT_EQ((*arm_with(*engine, {{"rope", "gpu-rope"}}))->dispatch(), "h100+rope=gpu-rope");
  EXPECT_EQ((*arm_with(*engine, {{"rope", "same"}}))->dispatch(), "h100+rope=same");
}

TEST(RopeOrigin, RefusesWhatItCannotGive) {
  const auto engine = engine_with_origins();
  const auto message = [&](std::initializer_list<ArmSetting> settings, ErrorKind kind) {
    const auto arm = arm_with(*engine, settings);
    EXPECT_FALSE(arm);
    if (arm) return std::string();
    EXPECT_EQ(arm.error().kind, kind);
    return arm.error().message;
  };
  EXPECT_EQ(message({{"rope", "none"}}, ErrorKind::unavailable), "rope=none: not here");
  EXPECT_THAT(message({{"rope", "transformers-rop"}}, ErrorKind::usage),
              testing::AllOf(HasSubstr("did you mean transformers-rope?"),
                             HasSubstr("; factors of a back end: same; factors")));
  EXPECT_EQ(message({{"dispatch", "binary64"}, {"rope", "same"}}, ErrorKind::usage),
            "rope=same: dispatch binary64 names no kernels; accepted: another dispatch");
  EXPECT_EQ(message({{"plant", "rope-table-16-bit"}, {"rope", "same"}}, ErrorKind::usage),
            "plant=rope-table-16-bit with rope=same; accepted: with the factors of a kernel");
}

}  // namespace
}  // namespace kvsim
