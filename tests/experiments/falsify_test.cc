// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/studies/falsify_model.h"
#include "experiments/studies/falsify_summaries.h"
#include "experiments/tables.h"
#include "tests/run/engine_runs.h"

namespace kvsim::experiments {
namespace {

/// A small model on the simulator, with two prompts.
struct SmallSetup {
  explicit SmallSetup(const std::string& settings) : engine(test::engine_of("llama-llama3")) {
    setup.engine = engine.get();
    setup.on = test::arm_of("live:" + settings);
    setup.off = test::arm_of("off:" + settings);
    setup.new_tokens = 3;
    setup.version = "test";
    setup.strategies = {strategy_named("greedy").value()};
    setup.prompts = {{{0, {17, 48, 48, 58, 66}}, ""}, {{1, {49, 3, 20, 21, 22, 9}}, ""}};
  }
  std::unique_ptr<Engine> engine;
  StudySetup setup;
};

std::vector<double> all_of(const Json& lists) {
  std::vector<double> numbers;
  for (const Json& list : lists) {
    for (const Json& each : list) numbers.push_back(each.get<double>());
  }
  return numbers;
}

// Both arms with the cache: nothing differs at all.
TEST(Falsify, EqualArmsHaveEqualLayers) {
  SmallSetup small("dispatch=h100-fa3");
  small.setup.off = small.setup.on;
  const Json values = measure_layers(small.setup, {"layers"}).value();
  EXPECT_EQ(values.at("relative").size(), 3);
  for (const double relative : all_of(values.at("relative"))) EXPECT_EQ(relative, 0);
  EXPECT_EQ(values.at("kl"), (Json{0.0, 0.0, 0.0}));
}

// Nothing is rounded to storage and every sum is exact to binary64 rounding: far below binary16.
TEST(Falsify, LayersDifferByRoundingAlone) {
  const SmallSetup rounded("dispatch=h100-fa3");
  const SmallSetup wide("dispatch=fp32");
  double most = 0;
  for (const double relative :
       all_of(measure_layers(wide.setup, {"layers"}).value().at("relative"))) {
    most = std::max(most, relative);
  }
  EXPECT_GT(most, 0);
  EXPECT_LT(most, 1e-5);
}

// The digests of the same rows, which are computed apart from the numbers, differ as often.
TEST(Falsify, RowsOfTheCacheDifferAsTheirDigestsDo) {
  for (const char* dispatch : {"h100-fa3", "fp32", "binary64"}) {
    const SmallSetup small(std::string("dispatch=") + dispatch);
    const Json values = measure_cache(small.setup, {"cache"}).value();
    std::map<std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>, std::string> rows;
    std::map<std::pair<std::int64_t, std::string>, std::pair<double, double>> counts;
    for (const CacheConstructor constructor :
         {CacheConstructor::one_shot, CacheConstructor::all_token_wise}) {
      Arm arm = small.setup.on;
      arm.constructor = constructor;
      const auto prepared = prepare(*small.engine, arm).value();
      auto text = prepared.open(small.setup.prompts[0].prompt.ids, 1).value();
      const auto pass = text.next({.state_digests = true}).value();
      for (const StateDigest& each : pass.digests.state) {
        auto& [other, all] = counts[{each.layer, each.operation}];
        const auto [found, is_new] = rows.emplace(
            std::tuple(each.layer, each.operation, each.head, each.position), each.digest);
        if (is_new) continue;
        ++all;
        other += found->second == each.digest ? 0 : 1;
      }
    }
    for (const auto& [key, count] : counts) {
      const Json& block =
          values.at(key.second == "k" ? "key" : "value").at(static_cast<std::size_t>(key.first));
      EXPECT_EQ(block.at("rows").get<double>(), count.first / count.second) << dispatch;
      EXPECT_EQ(block.at("relative").get<double>() > 0, count.first > 0) << dispatch;
    }
  }
}

TEST(Falsify, FormatsAreThoseOfPairText) {
  const SmallSetup small("dispatch=h100-fa3");
  const Json values = measure_formats(small.setup, {"formats"}).value();
  EXPECT_EQ(values.at("replica").at("kl"), 0.0);
  EXPECT_EQ(values.at("replica").at("kl_binary32"), 0.0);
  EXPECT_EQ(values.at("formats").at("binary64").at("kl"), (Json{0.0, 0.0, 0.0}));
  const auto on = prepare(*small.engine, small.setup.on).value();
  const auto off = prepare(*small.engine, small.setup.off).value();
  const auto pair =
      compare_texts(on, off, small.setup.prompts[0].prompt.ids, {.sampling = {}, .new_tokens = 4})
          .value();
  const Json& given = values.at("formats").at("as given").at("kl");
  ASSERT_EQ(given.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(given.at(i).get<double>(), pair.forced[i + 1].kl);
}

Json text_that_flips(std::int64_t flip, std::int64_t steps, double plateau) {
  Json values = {{"flip", flip}, {"forced", Json::array()}, {"apart", Json::array()}};
  for (std::int64_t i = 0; i < steps; ++i) values["forced"].push_back(0.0);
  for (std::int64_t i = flip + 1; i < steps; ++i) values["apart"].push_back(plateau);
  return values;
}

// Mean KL = plateau × (steps − 1 − flip) ÷ steps: the correlation with the flip is −1, though KL
// after the flip is the same for every text.
TEST(Falsify, APlateauAloneCorrelatesWithTheFlip) {
  std::vector<TextOfStrategy> texts;
  for (const std::int64_t flip : {0, 1, 3, 4, 7}) {
    texts.push_back({"greedy", text_that_flips(flip, 10, 8)});
  }
  texts.push_back({"greedy", text_that_flips(0, 1, 8)});
  texts.back().values["flip"] = nullptr;
  const std::vector<Json> unrelated{{{"kl", {8.0, 8.0, 8.0}}}};
  StudySummary summary;
  summarize_texts(texts, unrelated, summary);
  const Json& greedy = summary.result.at("texts").at("greedy");
  EXPECT_EQ(greedy.at("texts"), 6);
  EXPECT_EQ(greedy.at("parted"), 5);
  EXPECT_EQ(greedy.at("r").at("value"), -1.0);
  EXPECT_TRUE(greedy.at("r_after").is_null());
  EXPECT_EQ(greedy.at("r_without_difference").at("low"), -1.0);
  EXPECT_EQ(greedy.at("early_over_late"), 1.0);
  EXPECT_EQ(greedy.at("kl_after"), 8.0);
  EXPECT_EQ(greedy.at("kl_same_tokens"), 0.0);
}

// Doubling from layer to layer; a prompt without any difference changes neither the factor nor,
// drawn alone, makes one.
TEST(Falsify, GrowthFromLayerToLayer) {
  const Json doubling = {{"relative", {{1e-3, 2e-3, 4e-3, 8e-3}, {1e-3, 2e-3, 4e-3, 8e-3}}}};
  StudySummary summary;
  summarize_layers(std::vector<Json>{doubling, doubling}, summary);
  const Json& layers = summary.result.at("layers");
  EXPECT_NEAR(layers.at("growth").at("value").get<double>(), 2, 1e-8);
  EXPECT_EQ(layers.at("differing"), 4);
  EXPECT_NEAR(layers.at("relative").at(3).get<double>(), 8e-3, 1e-12);
}

}  // namespace
}  // namespace kvsim::experiments
