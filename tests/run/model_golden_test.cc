// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model_places.h"
#include "model/checkpoint.h"
#include "model/model_store.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

/// A real model, KVSIM_GOLDEN_MODEL, in float32 against Hugging Face's transformers, which loaded
/// the same folder. How the expected values were made: scripts/make_model_goldens.py.
namespace kvsim {
namespace {

constexpr std::string_view model = KVSIM_GOLDEN_MODEL;
constexpr double close = 2e-4;
constexpr std::size_t top = 20;

/// Compares the 20 largest logits: each of theirs has that value with us, and none of ours that is
/// not among theirs is larger than their smallest by more than `close`.
void expect_top(std::span<const double> logits, const nlohmann::json& wanted, double& largest) {
  ASSERT_EQ(wanted.size(), top);
  std::vector<bool> named(logits.size(), false);
  for (const auto& row : wanted) {
    const auto token = row.at(0).get<std::size_t>();
    ASSERT_LT(token, logits.size());
    named[token] = true;
    const double error = std::fabs(logits[token] - row.at(1).get<double>());
    EXPECT_LT(error, close) << "token " << token;
    largest = std::max(largest, error);
  }
  const double smallest = wanted.back().at(1).get<double>();
  for (std::size_t token = 0; token < logits.size(); ++token) {
    EXPECT_TRUE(named[token] || logits[token] < smallest + close) << "token " << token;
  }
}

TEST(ModelGolden, Float32IsThatOfTransformers) {
  const auto folder = find_model(model, model_places());
  ASSERT_TRUE(folder) << folder.error().message;
  std::string path = KVSIM_SOURCE_DIR "/tests/golden/models/";
  std::ifstream file(path.append(model).append(".json"));
  ASSERT_TRUE(file) << path;
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto checkpoint = load_checkpoint(*folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->identity(), golden.at("identity").get<std::string>())
      << "another import than the golden's";

  const DecoderShape shape = decoder_shape(checkpoint->config()).value();
  DecoderArmOptions options{
      .dispatch = DispatchChoice::named("fp32").value(), .attention = {}, .engine = {}};
  options.storage = softfloat::binary32;
  options.engine.threads = 2;
  auto decoder = IncrementalDecoder::make(shape, decoder_weights(*checkpoint).value(), options);
  ASSERT_TRUE(decoder) << decoder.error().message;

  double largest = 0;
  int compared = 0;
  int too_close = 0;
  for (const auto& prompt : golden.at("prompts")) {
    auto tokens = prompt.at("ids").get<std::vector<std::int32_t>>();
    KvCache cache = decoder->new_cache();
    for (const auto& step : prompt.at("steps")) {
      // The prompt at once, then token by token.
      DecoderPass pass;
      pass.first_row = cache.rows();
      pass.tokens = std::span(tokens).subspan(static_cast<std::size_t>(cache.rows()));
      const auto result = decoder->pass(cache, pass);
      ASSERT_TRUE(result) << result.error().message;
      const std::vector<double>& logits = result->logits;
      if (step.contains("top")) expect_top(logits, step.at("top"), largest);
      const auto best = std::ranges::max_element(logits) - logits.begin();
      const auto token = step.at("token").get<std::int32_t>();
      if (step.at("margin").get<double>() > 2 * close) {
        EXPECT_EQ(best, token);
        ++compared;
      } else {
        ++too_close;
      }
      tokens.push_back(token);
    }
  }
  fmt::print("{}: largest difference {:.2g}, {} tokens compared\n", model, largest, compared);
  EXPECT_EQ(too_close, 0) << "steps whose margin decides nothing";
  EXPECT_GE(golden.at("prompts").size(), 20U);
}

}  // namespace
}  // namespace kvsim
