// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "softfloat/formats.h"
#include "tests/model/test_file.h"
#include "tests/run/decoder_fixture.h"

/// The decoder against Hugging Face's transformers, one model for each architecture. What the
/// models are, and how the expected values were computed: scripts/make_decoder_fixtures.py.
namespace kvsim::test {
namespace {

constexpr double close = 1e-10;
constexpr double least_move = 1e-3;

class DecoderGolden : public testing::TestWithParam<std::string_view> {
 protected:
  DecoderGolden() : fixture_(GetParam()) {}

  void expect_state(const KvCache& cache, std::string_view label) const {
    for (std::int64_t layer = 0; layer < fixture_.shape.layers; ++layer) {
      for (const KvPart part : {KvPart::key, KvPart::value}) {
        const std::string name =
            fmt::format("layers.{}.{}", layer, part == KvPart::key ? "key" : "value");
        const std::vector<double> wanted = numbers_of<double>(fixture_.tensors, name);
        // [heads][positions][head_dim] of the kept positions.
        std::vector<double> found;
        const auto all = cache.read_double(layer, part, 0, cache.rows());
        for (std::int64_t head = 0; head < fixture_.shape.kv_heads; ++head) {
          for (const std::int64_t position : fixture_.positions) {
            const auto begin =
                all.begin() + (head * cache.rows() + position) * fixture_.shape.head_dim;
            found.insert(found.end(), begin, begin + fixture_.shape.head_dim);
          }
        }
        EXPECT_LT(distance(found, wanted).largest, close * largest(wanted)) << label << " " << name;
      }
    }
  }

  Fixture fixture_;
};

TEST_P(DecoderGolden, Binary64IsThatOfTransformers) {
  for (const Passes passes : {Passes::one, Passes::one_per_token}) {
    const std::string_view label = passes == Passes::one ? "one pass" : "token by token";
    const FixtureRun run = run_fixture(
        fixture_, {.dispatch = "binary64", .storage = softfloat::binary64, .passes = passes});
    const double error = distance(run.logits, fixture_.logits).largest / largest(fixture_.logits);
    fmt::print("{} in binary64, {}: {:.2g} of the largest logit\n", GetParam(), label, error);
    EXPECT_LT(error, close) << label;
    expect_state(run.cache, label);
  }
}

/// One way to run the model in a format that transformers was measured in.
struct RoundedRun {
  std::string_view dtype;
  std::string_view dispatch;
  softfloat::Format storage;
  Passes passes;
};

TEST_P(DecoderGolden, RoundedRunsAreAsCloseAsThoseOfTransformers) {
  const auto runs = std::to_array<RoundedRun>({
      {"float32", "fp32", softfloat::binary32, Passes::one},
      {"float32", "fp32", softfloat::binary32, Passes::one_per_token},
      {"float32", "torch-cpu", softfloat::binary32, Passes::one},

      {"float32", "exact", softfloat::binary32, Passes::one},
      {"float32", "layercast", softfloat::bfloat16, Passes::one},
      {"bfloat16", "torch-cpu", softfloat::bfloat16, Passes::one},
      {"bfloat16", "torch-cpu", softfloat::bfloat16, Passes::one_per_token},
      {"bfloat16", "h100-fa3", softfloat::bfloat16, Passes::one},
      {"bfloat16", "a100-fa2", softfloat::bfloat16, Passes::one},
      {"bfloat16", "b200-fa4", softfloat::bfloat16, Passes::one},
      {"bfloat16", "mi300-fa2", softfloat::bfloat16, Passes::one},
      {"bfloat16", "batch-invariant", softfloat::bfloat16, Passes::one},
      {"bfloat16", "exact", softfloat::bfloat16, Passes::one},
      {"bfloat16", "llama.cpp-cpu", softfloat::bfloat16, Passes::one},
      {"bfloat16", "h100-fa3", softfloat::bfloat16, Passes::one_per_token},
  });
  for (const RoundedRun& each : runs) {
    // The closer one of its attention implementations.
    Distance reference;
    for (const auto& row : fixture_.golden.at("distances")) {
      if (row.at("dtype") != each.dtype) continue;
      reference.largest = std::min(reference.largest, row.at("largest").get<double>());
      reference.root_mean_square =
          std::min(reference.root_mean_square, row.at("root_mean_square").get<double>());
    }
    const Distance ours = distance(
        run_fixture(fixture_, {each.dispatch, each.storage, each.passes}).logits, fixture_.logits);
    const std::string label =
        fmt::format("{} in {} under {}, {}", GetParam(), each.dtype, each.dispatch,
                    each.passes == Passes::one ? "one pass" : "token by token");
    fmt::print("{}: {:.2g}, transformers {:.2g}; largest {:.2g} and {:.2g}\n", label,
               ours.root_mean_square, reference.root_mean_square, ours.largest, reference.largest);
    EXPECT_LE(ours.root_mean_square, 2 * reference.root_mean_square) << label;
    EXPECT_GT(ours.root_mean_square, 0) << label;
  }
}

/// What the shape becomes where a field of config.json has other values.
DecoderShape shape_with(const Fixture& fixture, const nlohmann::json& values) {
  nlohmann::json config = fixture.config;
  for (const auto& [path, value] : values.items()) {
    std::string pointer = "/" + path;
    std::ranges::replace(pointer, '.', '/');
    config[nlohmann::json::json_pointer(pointer)] = value;
  }
  const auto parsed = parse_config(config.dump(), "config");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return decoder_shape(*parsed).value();
}

/// What the shape becomes where a property of the architecture is left out.
DecoderShape shape_without(DecoderShape shape, std::string_view property) {
  if (property == "scale_of_hidden") {
    shape.attention_scale = 1 / std::sqrt(static_cast<double>(shape.hidden / shape.query_heads));
  } else if (property == "without_head_norms") {
    shape.qk_norm = false;
  } else if (property == "without_sandwich_norms") {
    shape.sandwich_norms = false;
  } else if (property == "plain_norm_weight") {
    shape.norm_weight_plus_one = false;
  } else if (property == "plain_embedding") {
    shape.embedding_scale = 1;
  } else if (property == "without_projection_biases") {
    shape.qkv_bias = false;
  } else {
    ADD_FAILURE() << property;
  }
  return shape;
}

// Left out here, a field moves the logits as far as it does in transformers.
TEST_P(DecoderGolden, EveryFieldMovesALogit) {
  for (const auto& row : fixture_.golden.at("ignored")) {
    const std::string field = row.at("field");
    DecoderWeights weights = fixture_.weights;
    DecoderShape shape = fixture_.shape;
    if (row.contains("property")) {
      shape = shape_without(shape, row.at("property").get<std::string>());
    } else if (row.at("values").contains("tie_word_embeddings")) {
      weights.output = {};
    } else {
      shape = shape_with(fixture_, row.at("values"));
      EXPECT_NE(shape, fixture_.shape) << field;
    }
    const FixtureRun run = run_fixture(fixture_, shape, weights, {.storage = softfloat::binary64});
    const double move = distance(run.logits, fixture_.logits).largest;
    EXPECT_GT(move, least_move * largest(fixture_.logits)) << field;
    EXPECT_NEAR(move, row.at("move").get<double>(), 1e-8 * move) << field;
  }
}

// The fields that decide sizes cannot be ignored: the weights would not fit.
TEST_P(DecoderGolden, SizesThatTheWeightsContradictAreRefused) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(fixture_path(GetParam(), "model.safetensors"),
                             folder.file("model.safetensors"));
  for (const char* field : {"head_dim", "num_key_value_heads"}) {
    nlohmann::json config = fixture_.config;
    config.erase(field);
    write_file(folder.file("config.json"), config.dump());
    const auto loaded = load_checkpoint(folder.path().string());
    ASSERT_FALSE(loaded) << field;
    expect_one_line(loaded.error());
  }
}

TEST(DecoderWeights, NumbersThatAreNoneAreRefused) {
  const TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(fixture_path("mistral", file), folder.file(file));
  }
  {
    std::fstream weights(folder.file("model.safetensors"), std::ios::in | std::ios::out);
    weights.seekp(-2, std::ios::end);
    weights.write("\xc0\x7f", 2);  // NaN in bfloat16, the last number of the last tensor
  }
  const auto checkpoint = load_checkpoint(folder.path().string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto weights = decoder_weights(*checkpoint);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().kind, ErrorKind::file);
  EXPECT_NE(weights.error().message.find("is NaN at row "), std::string::npos)
      << weights.error().message;
  expect_one_line(weights.error());
}

INSTANTIATE_TEST_SUITE_P(All, DecoderGolden, testing::ValuesIn(fixture_names),
                         [](const auto& instance) {
                           std::string name(instance.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace kvsim::test
