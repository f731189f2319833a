// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpu/torch_engine.h"
#include "run/sim_engine.h"
#include "tests/gpu/torch_fixture.h"
#include "tests/run/decoder_fixture.h"

/// libtorch's decoder against what transformers computes in float64, and against the simulator.
namespace kvsim::gpu {
namespace {

using test::run_way;
using testing::HasSubstr;

std::unique_ptr<Engine> engine_of(std::string_view model) {
  return test::torch_engine(test::fixture_path(model, ""), model);
}

constexpr std::string_view attentions[] = {"eager", "sdpa", "sdpa-flash", "sdpa-math"};

/// Whether the model has attention of that kind.
bool has(std::string_view model, std::string_view attention) {
  return model != "gemma2" || attention == "eager";
}

/// The logits at the fixture's positions, token by token from the first.
std::vector<double> logits_of(EngineSequence& sequence, const test::Fixture& fixture) {
  std::vector<double> logits;
  std::int64_t position = 0;
  for (const EnginePass& pass :
       run_way(sequence, fixture.ids, std::vector<std::int64_t>(fixture.ids.size(), 1), {})) {
    if (std::ranges::find(fixture.positions, position++) == fixture.positions.end()) continue;
    logits.insert(logits.end(), pass.logits.begin(), pass.logits.end());
  }
  return logits;
}

// transformers with every float32 of its own replaced by float64 (make_decoder_fixtures.py).
TEST(TorchDecoder, IsThatOfTransformersInFloat64) {
  constexpr double close = 1e-10;
  for (const std::string_view model : test::fixture_names) {
    const test::Fixture fixture(model);
    const auto engine = engine_of(model);
    const double scale = test::largest(fixture.logits);
    const std::ptrdiff_t width = fixture.shape.vocabulary;
    for (const std::string_view attention : attentions) {
      if (!has(model, attention)) continue;
      const auto arm = engine->arm(
          std::vector<ArmSetting>{{"attention", std::string(attention)}, {"storage", "binary64"}});
      ASSERT_TRUE(arm) << arm.error().message;
      const auto by_token = (*arm)->open(128, {});
      const auto at_once = (*arm)->open(128, {});
      ASSERT_TRUE(by_token && at_once);
      const double error =
          test::distance(logits_of(**by_token, fixture), fixture.logits).largest / scale;
      fmt::print("{} {}: {:.2g} of the largest logit\n", model, attention, error);
      EXPECT_LT(error, close) << model << " " << attention;
      const auto passes = run_way(**at_once, fixture.ids, {std::ssize(fixture.ids)}, {});
      ASSERT_EQ(passes.size(), 1U);
      const std::span<const double> last(fixture.logits.end() - width, fixture.logits.end());
      EXPECT_LT(test::distance(passes[0].logits, last).largest, close * scale)
          << model << " " << attention;
    }
  }
}

TEST(TorchDecoder, IsAsCloseInOtherFormatsAsTransformers) {
  for (const std::string_view model : test::fixture_names) {
    const test::Fixture fixture(model);
    const auto engine = engine_of(model);
    for (const auto& row : fixture.golden.at("distances")) {
      const auto arm = engine->arm(test::torch_settings(row.at("attention").get<std::string>(),
                                                        row.at("dtype").get<std::string>()));
      ASSERT_TRUE(arm) << arm.error().message;
      const auto sequence = (*arm)->open(128, {});
      ASSERT_TRUE(sequence);
      const test::Distance ours = test::distance(logits_of(**sequence, fixture), fixture.logits);
      const auto theirs = row.at("root_mean_square").get<double>();
      EXPECT_LE(ours.root_mean_square, 2 * theirs) << model << " " << (*arm)->dispatch();
      EXPECT_GT(ours.root_mean_square, 0) << model << " " << (*arm)->dispatch();
    }
  }
}

TEST(TorchDecoder, HandsOnStateAndCostAsTheSimulatorDoes) {
  for (const std::string_view model : {"gemma3", "mistral", "llama-llama3"}) {
    const test::Fixture fixture(model);
    const auto torch = engine_of(model);
    auto checkpoint = load_checkpoint(test::fixture_path(model, ""));
    ASSERT_TRUE(checkpoint);
    const auto sim = make_sim_engine(std::move(*checkpoint), std::string(model), {});
    ASSERT_TRUE(sim);
    const auto torch_arm = torch->arm(std::vector<ArmSetting>{{"storage", "binary64"}});
    const auto sim_arm = (*sim)->arm(std::vector<ArmSetting>{{"dispatch", "binary64"}});
    ASSERT_TRUE(torch_arm && sim_arm);
    for (const std::int64_t width : {1, 3}) {
      const Launch launch{.prompt_tokens = 33, .verify_width = width};
      const auto of_torch = (*torch_arm)->open(128, launch);
      const auto of_sim = (*sim_arm)->open(128, launch);
      ASSERT_TRUE(of_torch && of_sim);
      const PassRequest request{.state_values = true, .layer_values = true};
      const std::vector<std::int64_t> rows{33, 1, 1};
      const auto ours = run_way(**of_torch, fixture.ids, rows, request);
      const auto theirs = run_way(**of_sim, fixture.ids, rows, request);
      ASSERT_EQ(ours.size(), theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_EQ(ours[i].cost, theirs[i].cost) << model;
        EXPECT_LT(test::distance(ours[i].logits, theirs[i].logits).largest,
                  1e-10 * test::largest(theirs[i].logits))
            << model << " pass " << i << " width " << width;
        ASSERT_EQ(ours[i].values.size(), theirs[i].values.size());
        for (std::size_t k = 0; k < ours[i].values.size(); ++k) {
          const StateValues& a = ours[i].values[k];
          const StateValues& b = theirs[i].values[k];
          ASSERT_EQ(std::tie(a.layer, a.operation, a.head, a.position),
                    std::tie(b.layer, b.operation, b.head, b.position));
          ASSERT_EQ(a.values.size(), b.values.size());
          for (std::size_t n = 0; n < a.values.size(); ++n) {
            ASSERT_NEAR(a.values[n], b.values[n], 1e-5 * (1 + std::fabs(b.values[n])));
          }
        }
      }
    }
  }
}

TEST(TorchDecoder, GoesOnFromACopyAndFromAnEarlierRow) {
  const test::Fixture fixture("gemma3");
  const auto engine = engine_of("gemma3");
  const auto arm = engine->arm({});
  ASSERT_TRUE(arm);
  const auto sequence = (*arm)->open(128, {});
  ASSERT_TRUE(sequence);
  const std::vector<TokenId> tokens(fixture.ids.begin(), fixture.ids.end());
  const std::span<const TokenId> all(tokens);
  const PassRequest request{.state_digests = true, .layer_digests = true};
  ASSERT_TRUE((*sequence)->pass(all.first(50), {0, 50, 0}, request));
  const auto saved = (*sequence)->save();
  ASSERT_TRUE(saved);
  const auto straight = (*sequence)->pass(all.first(51), {50, 1, 50}, request);
  ASSERT_TRUE(straight);
  // Longer than the window, so that rows which a layer no longer sees are needed again.
  ASSERT_TRUE((*sequence)->pass(all.first(72), {51, 21, 51}, request));
  for (EngineSequence* again : {sequence->get(), saved->get()}) {
    const auto pass = again->pass(all.first(51), {50, 1, 50}, request);
    ASSERT_TRUE(pass) << pass.error().message;
    EXPECT_EQ(pass->logits, straight->logits);
    EXPECT_EQ(pass->digests, straight->digests);
  }
  (*sequence)->clear();
  EXPECT_FALSE((*sequence)->pass(all.first(51), {50, 1, 50}, request));
}

TEST(TorchDecoder, RefusesWhatDoesNotFit) {
  const test::Fixture fixture("qwen2");
  const auto engine = engine_of("qwen2");
  const auto arm = engine->arm({});
  ASSERT_TRUE(arm);
  EXPECT_FALSE((*arm)->open(128, {.neighbours = {3}}));
  EXPECT_FALSE((*arm)->open(128, {.padding = Padding::left}));
  const auto sequence = (*arm)->open(128, {});
  ASSERT_TRUE(sequence);
  const std::vector<TokenId> tokens{1, 2, static_cast<TokenId>(engine->vocabulary())};
  const std::span<const TokenId> all(tokens);
  for (const PlanStep& step : {PlanStep{0, 3, 0}, PlanStep{0, 1, 0}, PlanStep{2, 0, 2}}) {
    const auto pass = (*sequence)->pass(all, step, {});
    ASSERT_FALSE(pass);
    EXPECT_EQ(pass.error().kind, ErrorKind::usage);
    EXPECT_THAT(pass.error().message, HasSubstr("accepted"));
  }
  const auto behind = (*sequence)->pass(all.first(2), {1, 1, 1}, {});
  ASSERT_FALSE(behind);
  EXPECT_THAT(behind.error().message, HasSubstr("0 rows in the cache"));
}

}  // namespace
}  // namespace kvsim::gpu
