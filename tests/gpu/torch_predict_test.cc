// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/torch/decoder.h"
#include "gpu/torch_library.h"
#include "gpu/torch_rope.h"
#include "run/model_shape.h"
#include "sim/decoder/layer_weights.h"
#include "sim/predict/linear_sample.h"
#include "sim/predict/prediction.h"
#include "sim/predict/streams.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"

/// What predict says about cache-on against cache-off under the dispatch torch-cpu-avx2, measured:
/// libtorch computes the same numbers in both ways.
namespace kvsim::gpu {
namespace {

using decoder::LayerWeights;
using decoder::WeightKind;

constexpr std::int64_t layers = 3;
constexpr std::int64_t prefix = 16;
constexpr std::int64_t keys = 128;
constexpr std::int64_t positions = 4;

ModelConfig config() {
  ModelConfig made = built_in_config("smollm2-135m").value();
  made.layers = layers;
  made.vocabulary = prefix + 1;
  return made;
}

PredictionOptions options_of(const softfloat::Format& storage) {
  PredictionOptions options;
  options.device = find_dispatch("torch-cpu-avx2").value();
  options.decoder = decoder_shape(config()).value();
  options.storage = storage;
  options.kv_len = keys;
  options.prefix = prefix;
  options.positions = positions;
  options.trials = 100;
  return options;
}

void expect_equal(const VectorDifference& predicted, const VectorDifference& measured,
                  const std::string& what) {
  EXPECT_EQ(predicted.elements, measured.elements) << what;
  EXPECT_EQ(predicted.differing, measured.differing) << what;
  EXPECT_EQ(predicted.l2, measured.l2) << what;
  EXPECT_EQ(predicted.reference_l2, measured.reference_l2) << what;
  EXPECT_EQ(predicted.cosine, measured.cosine) << what;
  EXPECT_EQ(predicted.max_absolute, measured.max_absolute) << what;
  EXPECT_EQ(predicted.max_ulp, measured.max_ulp) << what;
  EXPECT_TRUE(predicted.histogram == measured.histogram) << what;
  fmt::print("{}: {} of {} differ, rel L2 {:.3g}\n", what, measured.differing, measured.elements,
             measured.relative_l2);
}

std::vector<float> run(Backend& backend, const std::string& operation, std::vector<Tensor> inputs,
                       bool causal = false) {
  OperatorCall call{operation, std::move(inputs), {}};
  if (causal) call.attributes["causal"] = "1";
  const auto result = backend.run(call);
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->values : std::vector<float>();
}

std::vector<float> sdpa(Backend& backend, const softfloat::Format& storage,
                        const AttentionNumbers& numbers) {
  const AttentionShape& shape = numbers.shape;
  return run(backend, "sdpa",
             {{storage, {shape.query_heads, shape.query_len, shape.head_dim}, numbers.q},
              {storage, {shape.kv_heads, shape.kv_len, shape.head_dim}, numbers.k},
              {storage, {shape.kv_heads, shape.kv_len, shape.head_dim}, numbers.v}},
             shape.query_len > 1);
}

VectorDifference attention_difference(Backend& backend, const PredictionOptions& options) {
  const DecoderShape& model = options.decoder;
  const AttentionShape shape{model.query_heads, model.kv_heads, keys, keys, model.head_dim};
  const AttentionNumbers numbers =
      make_attention_numbers(options.input, options.seed, shape, options.storage);
  const std::vector<float> prefill = sdpa(backend, options.storage, numbers);
  std::vector<float> on;
  std::vector<float> off;
  for (std::int64_t query = keys - positions; query < keys; ++query) {
    const std::vector<float> one =
        sdpa(backend, options.storage, part_of_sequence(numbers, query, query));
    on.insert(on.end(), one.begin(), one.end());
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const auto begin = prefill.begin() + (head * keys + query) * shape.head_dim;
      off.insert(off.end(), begin, begin + shape.head_dim);
    }
  }
  return compare_vectors(options.storage, on, off);
}

/// A matrix [rows][columns], the other way round.
std::vector<float> transposed(std::span<const float> matrix, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> out(matrix.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[static_cast<std::size_t>(j * rows + i)] =
          matrix[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return out;
}

VectorDifference projection_difference(Backend& backend, const PredictionOptions& options,
                                       const ProjectionDifference& predicted) {
  const std::int64_t terms = options.decoder.hidden;
  const std::int64_t outputs = options.decoder.kv_heads * options.decoder.head_dim;
  const LinearSample sample =
      make_linear_sample(options.storage, {predicted.rows, terms, outputs, outputs}, options.seed,
                         streams::k_projection);
  const Tensor w{options.storage, {outputs, terms}, transposed(sample.w, terms, outputs)};
  std::vector<float> launch = sample.x;  // what the other rows are changes nothing
  launch.resize(static_cast<std::size_t>(predicted.launch_rows * terms), 1);
  std::vector<float> together =
      run(backend, "linear", {{options.storage, {predicted.launch_rows, terms}, launch}, w});
  together.resize(static_cast<std::size_t>(predicted.rows * outputs));
  std::vector<float> alone;
  for (std::int64_t row = 0; row < predicted.rows; ++row) {
    const auto begin = sample.x.begin() + row * terms;
    const std::vector<float> one =
        run(backend, "linear", {{options.storage, {1, terms}, {begin, begin + terms}}, w});
    alone.insert(alone.end(), one.begin(), one.end());
  }
  return compare_vectors(options.storage, alone, together);
}

/// The decoder of predict's drift: its first hidden states are the rows of the embedding.
class SeededModel {
 public:
  explicit SeededModel(const PredictionOptions& options)
      : shape_(options.decoder), drawn_(options.seed, options.storage, {}) {
    weights_.embedding =
        vector(std::int64_t{1} << 16, WeightKind::first_hidden, (prefix + 1) * shape_.hidden, 0, 1);
    weights_.embedding.rows = prefix + 1;
    weights_.embedding.columns = shape_.hidden;
    weights_.final_norm = vector(0, WeightKind::mlp_norm, shape_.hidden, 1, 0.1F);
    const std::int64_t queries = shape_.query_heads * shape_.head_dim;
    const std::int64_t kv = shape_.kv_heads * shape_.head_dim;
    for (std::int64_t i = 0; i < layers; ++i) {
      DecoderLayerWeights& layer = weights_.layers.emplace_back();
      layer.attention_norm = vector(i, WeightKind::attention_norm, shape_.hidden, 1, 0.1F);
      layer.mlp_norm = vector(i, WeightKind::mlp_norm, shape_.hidden, 1, 0.1F);
      layer.query = matrix(i, WeightKind::query, shape_.hidden, queries);
      layer.key = matrix(i, WeightKind::key, shape_.hidden, kv);
      layer.value = matrix(i, WeightKind::value, shape_.hidden, kv);
      layer.output = matrix(i, WeightKind::output, queries, shape_.hidden);
      layer.gate = matrix(i, WeightKind::gate, shape_.hidden, shape_.ffn);
      layer.up = matrix(i, WeightKind::up, shape_.hidden, shape_.ffn);
      layer.down = matrix(i, WeightKind::down, shape_.ffn, shape_.hidden);
    }
  }
  const DecoderWeights& weights() const { return weights_; }

 private:
  WeightView keep(std::vector<float> numbers, std::int64_t rows) {
    kept_.push_back(std::make_unique<std::vector<float>>(std::move(numbers)));
    return {kept_.back()->data(), softfloat::binary32, rows, std::ssize(*kept_.back()) / rows};
  }
  WeightView vector(std::int64_t layer, WeightKind kind, std::int64_t count, float center,
                    float deviation) {
    return keep(drawn_.vector(layer, kind, count, center, deviation).value(), 1);
  }
  WeightView matrix(std::int64_t layer, WeightKind kind, std::int64_t terms, std::int64_t outputs) {
    const float* const numbers = drawn_.matrix(layer, kind, terms, outputs).value();
    return keep(transposed({numbers, static_cast<std::size_t>(terms * outputs)}, terms, outputs),
                outputs);
  }

  DecoderShape shape_;
  LayerWeights drawn_;
  DecoderWeights weights_;
  std::vector<std::unique_ptr<std::vector<float>>> kept_;
};

/// The last token's hidden state after each layer, by passes of so many tokens.
std::vector<std::vector<float>> last_states(const TorchModel& model,
                                            const std::vector<std::int64_t>& passes) {
  const auto sequence = model.open(AttentionFunction::sdpa, 1);
  std::vector<std::int32_t> tokens(prefix + 1);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<std::vector<float>> states;
  std::size_t first = 0;
  for (const std::int64_t count : passes) {
    states.clear();
    TorchPass pass;
    pass.tokens = std::span(tokens).subspan(first, static_cast<std::size_t>(count));
    pass.observer = [&](const OperatorOutput& output) {
      states.emplace_back(output.values.end() - output.width, output.values.end());
    };
    const auto done = sequence->pass(pass);
    EXPECT_TRUE(done) << done.error().message;
    first += static_cast<std::size_t>(count);
  }
  return states;
}

TEST(TorchPredict, MeasuresWhatIsPredicted) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  const auto make = torch_function<MakeTorchModel>("test", make_torch_model_name);
  ASSERT_TRUE(make) << make.error().message;
  for (const auto& storage : {softfloat::binary32, softfloat::bfloat16}) {
    const std::string name(softfloat::format_name(storage));
    const ModelConfig model_config = config();
    PredictionOptions options = options_of(storage);
    const auto rope = torch_rope_source(options.decoder, storage);
    ASSERT_TRUE(rope) << rope.error().message;
    options.rope_source = *rope;
    const auto predicted = predict(options);
    ASSERT_TRUE(predicted) << predicted.error().message;
    expect_equal(predicted->attention.difference, attention_difference(*backend, options),
                 name + ", attention");
    EXPECT_GT(predicted->attention.difference.differing, 0);
    expect_equal(predicted->projections.k,
                 projection_difference(*backend, options, predicted->projections),
                 name + ", K, one row against all");
    const SeededModel seeded(options);
    Result<std::unique_ptr<TorchModel>> model = std::unique_ptr<TorchModel>();
    (*make)({&model_config, &seeded.weights(), storage, false, false}, model);
    ASSERT_TRUE(model) << model.error().message;
    const auto on = last_states(**model, {prefix, 1});
    const auto off = last_states(**model, {prefix + 1});
    ASSERT_EQ(std::ssize(predicted->drift.layers), layers);
    ASSERT_EQ(std::ssize(on), layers);
    for (std::size_t i = 0; i < on.size(); ++i) {
      expect_equal(predicted->drift.layers[i].on_off, compare_vectors(storage, on[i], off[i]),
                   fmt::format("{}, hidden state after layer {}", name, i));
    }
    EXPECT_TRUE(predicted->drift.on_state == on.back());
    EXPECT_TRUE(predicted->drift.off_state == off.back());
  }
}

}  // namespace
}  // namespace kvsim::gpu
