// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/model/test_file.h"
#include "tests/run/engine_runs.h"

namespace kvsim {
namespace {

using testing::HasSubstr;

using namespace test;

TEST(SimEngine, GivesTheSameLinesWithAnyNumberOfThreads) {
  const Comparison one = compare(*engine_of("llama-llama3", 1), {"live", "off"});
  for (const int threads : {2, 7}) {
    EXPECT_EQ(compare(*engine_of("llama-llama3", threads), {"live", "off"}).lines, one.lines);
  }
}

TEST(SimEngine, GivesTheSameLinesWhetherCommonRowsAreKeptOrRecomputed) {
  for (const char* dispatch : {"h100-fa3", "torch-cpu", "fp32", "llama.cpp-cpu", "exact"}) {
    for (const bool forced : {false, true}) {
      const auto lines = [&](CommonRows rows) {
        return compare(*engine_of("gemma3", 1, rows), {"live", "off", "token-wise"},
                       std::string("dispatch=") + dispatch, {}, 8, forced)
            .lines;
      };
      EXPECT_EQ(lines(CommonRows::kept), lines(CommonRows::recomputed)) << dispatch;
    }
  }
  // Only where a pass has nothing beside its own rows.
  const Launch launch{1, {20, 3}, Padding::left, 1};
  const auto lines = [&](CommonRows rows) {
    return compare(*engine_of("qwen2", 1, rows), {"off", "off:plant=causal-leak"}, "", launch)
        .lines;
  };
  EXPECT_EQ(lines(CommonRows::kept), lines(CommonRows::recomputed));
}

// A pass from the start between two others, other tokens, fewer tokens.
TEST(SimEngine, KeepsRowsOnlyOfTheSameTokensFromTheStart) {
  const std::vector<std::vector<TokenId>> lists{{17, 48, 48, 58},
                                                {17, 48, 48, 58, 66},
                                                {17, 48, 47, 58, 66, 49},
                                                {17, 48, 47, 58},
                                                {17, 48, 47, 58, 1}};
  const auto results = [&](CommonRows rows) {
    const auto engine = engine_of("llama-llama3", 1, rows);
    const auto arm = engine->arm({});
    const auto sequence = (*arm)->open(32, {.prompt_tokens = 4});
    std::vector<RecordDigests> digests;
    const PassRequest request{.state_digests = true, .layer_digests = true};
    for (const std::vector<TokenId>& tokens : lists) {
      const auto rows_of = std::ssize(tokens);
      digests.push_back((*sequence)->pass(tokens, {0, rows_of, 0}, request).value().digests);
    }
    std::vector<TokenId> tokens = lists.back();
    for (int i = 0; i < 2; ++i) {  // one token against the cache, then from the start again
      tokens.push_back(7);
      const auto last = std::ssize(tokens) - 1;
      digests.push_back((*sequence)->pass(tokens, {last, 1, last}, request).value().digests);
      tokens.push_back(8);
      digests.push_back((*sequence)->pass(tokens, {0, last + 2, 0}, request).value().digests);
    }
    return digests;
  };
  EXPECT_EQ(results(CommonRows::kept), results(CommonRows::recomputed));
}

TEST(SimEngine, ContinuesASavedSequenceWithTheSameBits) {
  const auto engine = engine_of("mistral");
  const auto arm = engine->arm({});
  ASSERT_TRUE(arm);
  const auto sequence = (*arm)->open(32, {.prompt_tokens = 12});
  ASSERT_TRUE(sequence);
  const PassRequest request{.state_digests = true, .layer_digests = true, .state_values = true};
  ASSERT_TRUE((*sequence)->pass(prompt, {0, 12, 0}, request));
  const auto saved = (*sequence)->save();
  ASSERT_TRUE(saved);
  std::vector<TokenId> tokens = prompt;
  tokens.push_back(5);
  const auto first = (*sequence)->pass(tokens, {12, 1, 12}, request);
  // The original goes another way in between.
  tokens.back() = 6;
  ASSERT_TRUE((*sequence)->pass(tokens, {12, 1, 12}, request));
  tokens.back() = 5;
  const auto second = (*saved)->pass(tokens, {12, 1, 12}, request);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->logits, second->logits);
  EXPECT_EQ(first->digests, second->digests);
  EXPECT_EQ(first->digests.layer.size(), 3U);
  // 3 layers, K and V, 2 heads, one new position; digests are those of the values.
  ASSERT_EQ(first->digests.state.size(), 12U);
  ASSERT_EQ(first->values.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(first->digests.state[i].position, 12);
    const std::vector<double>& values = first->values[i].values;
    const std::vector<float> floats(values.begin(), values.end());
    EXPECT_EQ(first->digests.state[i].digest, digest_of(std::span<const float>(floats)));
  }
  EXPECT_GT(first->cost.multiply_adds, 0);
  (*saved)->clear();
  EXPECT_FALSE((*saved)->pass(tokens, {12, 1, 12}, request));
}

// What --explain prints, --set accepts, and it changes nothing.
TEST(SimEngine, ExplainsItselfInTheFormThatSettingsHave) {
  const auto engine = engine_of("gemma3");
  for (const char* dispatch : {"h100-fa3", "a100-fa2", "torch-cpu", "llama.cpp-cpu",
                               "batch-invariant", "layercast", "fp32", "exact", "binary64"}) {
    const ArmSetting set{"dispatch", dispatch};
    const auto arm = engine->arm(std::span(&set, 1));
    ASSERT_TRUE(arm) << arm.error().message;
    for (const PlanStep& step : {PlanStep{0, 12, 0}, PlanStep{12, 1, 12}}) {
      const auto lines = (*arm)->explain(step, {.prompt_tokens = 12});
      ASSERT_TRUE(lines);
      EXPECT_GT(lines->size(), dispatch == std::string_view("binary64") ? 0U : 10U);
      for (const ExplainedOperator& line : *lines) {
        const std::size_t equals = line.setting.find('=');
        ASSERT_NE(equals, std::string::npos) << line.operation;
        std::vector<ArmSetting> settings{
            set, {line.setting.substr(0, equals), line.setting.substr(equals + 1)}};
        if (settings[1].key == "dispatch") settings.erase(settings.begin());
        const auto again = engine->arm(settings);
        ASSERT_TRUE(again) << dispatch << ": " << again.error().message;
        EXPECT_EQ(*(*again)->explain(step, {.prompt_tokens = 12}), *lines)
            << dispatch << ": " << line.setting;
      }
    }
  }
}

TEST(SimEngine, ChangesOneLineOfADispatch) {
  const auto engine = engine_of("llama-llama3");
  const auto setting = [&](std::vector<ArmSetting> settings, std::string_view operation) {
    const auto arm = engine->arm(settings);
    EXPECT_TRUE(arm) << arm.error().message;
    const auto lines = (*arm)->explain({12, 1, 12}, {.prompt_tokens = 12});
    const auto line = std::ranges::find(*lines, operation, &ExplainedOperator::operation);
    return line == lines->end() ? std::string() : line->setting;
  };
  EXPECT_EQ(setting({}, "query"), "linear.m1=h100-gemv");
  EXPECT_EQ(setting({{"linear.m1", "gemv.lanes(32,4)"}}, "query"),
            "linear.m1=h100-gemv.lanes(32,4)");
  EXPECT_EQ(setting({{"attention.decode", "fa2.split8"}}, "attention"),
            "attention.decode=h100-fa2.split8");
  EXPECT_EQ(setting({{"dispatch", "exact"}, {"kv", "fp16"}}, "K and V"), "format.kv=binary16");
  const ArmSetting named[] = {{"dispatch", "torch-cpu"}, {"head", "fp32"}};
  EXPECT_EQ((*engine->arm(named))->dispatch(), "cpu+format.logits=fp32");
  EXPECT_EQ((*engine->arm(named))->logit_format(), softfloat::binary32);
}

TEST(SimEngine, PlantsADefectThatRoundingDoesNotMake) {
  const auto engine = engine_of("llama-llama3");
  const Comparison run = compare(*engine, {"live", "off", "live:plant=position+1"});
  EXPECT_LT(run.pairs[0].largest_kl, 1e-2);
  EXPECT_GT(run.pairs[1].largest_kl, 1e-2);
  const ArmSetting unknown{"plant", "position+2"};
  EXPECT_THAT(engine->arm(std::span(&unknown, 1)).error().message,
              HasSubstr("(did you mean position+1?)"));
}

// A kernel that cannot take the formats is refused before a pass.
TEST(SimEngine, RefusesFormatsThatAKernelLacksBeforeItComputes) {
  const auto engine = engine_of("llama-llama3");
  for (const auto& [arm, message] :
       {std::pair{"on:kv=fp32", "h100-fa3 with binary32 storage: accepted are binary16, bfloat16"},
        std::pair{"on:dispatch=batch-invariant,storage=fp32", "h100-fa2 with binary32 storage"},
        std::pair{"on:attention.decode=a100-vllm,kv=fp32", "kernel h100-fa3 with binary32"},
        std::pair{"on:linear=h100-fp8", "kernel h100-fp8 with storage format bfloat16"}}) {
    RunOptions options;
    options.arms = {arm_of(arm)};
    const Result<PreparedRun> run = PreparedRun::make(*engine, std::move(options), {{0, prompt}});
    ASSERT_FALSE(run) << arm;
    EXPECT_EQ(run.error().kind, ErrorKind::usage);
    EXPECT_THAT(run.error().message, HasSubstr(message));
  }
}

TEST(SimEngine, SaysWhatTheModelIs) {
  const auto engine = engine_of("mistral");
  EXPECT_EQ(engine->name(), "sim");
  EXPECT_EQ(engine->storage(), "bfloat16");
  EXPECT_EQ(engine->vocabulary(), 96);
  EXPECT_EQ(engine->max_positions(), 128);
  EXPECT_EQ(engine->model_sha256().size(), 64U);
  const ArmSetting speed{"speed", "3"};
  const auto refused = engine->arm(std::span(&speed, 1));
  ASSERT_FALSE(refused);
  expect_one_line(refused.error());
  EXPECT_THAT(refused.error().message, HasSubstr("setting \"speed\"; accepted: dispatch, plant"));
}

}  // namespace
}  // namespace kvsim
