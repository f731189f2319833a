// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "sim/decoder/incremental.h"
#include "sim/random_weights.h"
#include "softfloat/formats.h"

namespace kvsim::test {

/// A random model in memory, weights in bfloat16 or binary32, on which every feature acts.
class TinyModel {
 public:
  explicit TinyModel(DecoderShape shape, softfloat::Format format = softfloat::bfloat16)
      : shape_(std::move(shape)), format_(format) {
    const std::int64_t hidden = shape_.hidden;
    const std::int64_t query = shape_.query_heads * shape_.head_dim;
    const std::int64_t kv = shape_.kv_heads * shape_.head_dim;
    const float norm = shape_.norm_weight_plus_one ? 0.0F : 1.0F;
    weights_.embedding = draw(shape_.vocabulary, hidden, 0, 1);
    weights_.final_norm = draw(1, hidden, norm, 0.1F);
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      DecoderLayerWeights layer;
      layer.attention_norm = draw(1, hidden, norm, 0.1F);
      layer.query = matrix(query, hidden);
      layer.key = matrix(kv, hidden);
      layer.value = matrix(kv, hidden);
      layer.output = matrix(hidden, query);
      layer.mlp_norm = draw(1, hidden, norm, 0.1F);
      layer.gate = matrix(shape_.ffn, hidden);
      layer.up = matrix(shape_.ffn, hidden);
      layer.down = matrix(hidden, shape_.ffn);
      if (shape_.qkv_bias) {
        layer.query_bias = draw(1, query, 0, 0.2F);
        layer.key_bias = draw(1, kv, 0, 0.2F);
        layer.value_bias = draw(1, kv, 0, 0.2F);
      }
      if (shape_.output_bias) layer.output_bias = draw(1, hidden, 0, 0.2F);
      if (shape_.mlp_bias) {
        layer.gate_bias = draw(1, shape_.ffn, 0, 0.2F);
        layer.up_bias = draw(1, shape_.ffn, 0, 0.2F);
        layer.down_bias = draw(1, hidden, 0, 0.2F);
      }
      if (shape_.qk_norm) {
        layer.query_norm = draw(1, shape_.head_dim, norm, 0.1F);
        layer.key_norm = draw(1, shape_.head_dim, norm, 0.1F);
      }
      if (shape_.sandwich_norms) {
        layer.attention_post_norm = draw(1, hidden, norm, 0.1F);
        layer.mlp_post_norm = draw(1, hidden, norm, 0.1F);
      }
      weights_.layers.push_back(layer);
    }
  }

  [[nodiscard]] const DecoderShape& shape() const { return shape_; }
  [[nodiscard]] const DecoderWeights& weights() const { return weights_; }
  [[nodiscard]] DecoderWeights& weights() { return weights_; }

  /// Numbers of a view, read from the stored values.
  [[nodiscard]] std::vector<double> numbers(const WeightView& view) const {
    std::vector<float> out(static_cast<std::size_t>(view.rows * view.columns));
    read_weight_rows(view, 0, out);
    return {out.begin(), out.end()};
  }

  /// A matrix of the model, with rows taken from another one: K/V heads repeated, for example.
  WeightView with_rows(const WeightView& from, const std::vector<std::int64_t>& rows) {
    const std::vector<double> all = numbers(from);
    std::vector<float> chosen;
    for (const std::int64_t row : rows) {
      const auto begin = all.begin() + row * from.columns;
      chosen.insert(chosen.end(), begin, begin + from.columns);
    }
    return keep(chosen, static_cast<std::int64_t>(rows.size()), from.columns);
  }

 private:
  WeightView matrix(std::int64_t outputs, std::int64_t terms) {
    return draw(outputs, terms, 0, 1.5F / std::sqrt(static_cast<float>(terms)));
  }
  WeightView draw(std::int64_t rows, std::int64_t columns, float center, float deviation) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    EXPECT_TRUE(fill_random_weights({7, ++stream_, softfloat::binary32, deviation}, 0, values));
    for (float& x : values) x += center;
    EXPECT_TRUE(round_values(format_, values, values));
    return keep(values, rows, columns);
  }
  WeightView keep(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
    if (format_ == softfloat::binary32) {
      floats_.push_back(values);
      return {floats_.back().data(), format_, rows, columns};
    }
    // bfloat16 is the upper half of binary32.
    std::vector<std::uint16_t> codes;
    codes.reserve(values.size());
    for (const float x : values) {
      codes.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16U));
    }
    codes_.push_back(std::move(codes));
    return {codes_.back().data(), format_, rows, columns};
  }

  DecoderShape shape_;
  softfloat::Format format_;
  DecoderWeights weights_;
  std::deque<std::vector<std::uint16_t>> codes_;
  std::deque<std::vector<float>> floats_;
  std::uint64_t stream_ = std::uint64_t{1} << 62U;
};

inline DecoderShape tiny_shape() {
  DecoderShape shape;
  shape.layers = 2;
  shape.hidden = 64;
  shape.ffn = 96;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 16;
  shape.vocabulary = 80;
  return shape;
}

/// Everything that a shape can ask for, in three layers of which the second has no window.
inline DecoderShape full_shape() {
  DecoderShape shape = tiny_shape();
  shape.layers = 3;
  shape.norm_weight_plus_one = true;
  shape.sandwich_norms = true;
  shape.qk_norm = true;
  shape.qkv_bias = true;
  shape.output_bias = true;
  shape.mlp_bias = true;
  shape.rope_base = 500000;
  shape.rope_scaling = {RopeScalingKind::llama3, 8, 1, 4, 16};
  shape.window_rope_base = 10000;
  shape.window = 5;
  shape.has_window = {true, false, true};
  shape.attention_scale = 0.5;
  shape.attention_soft_cap = 5;
  shape.final_soft_cap = 10;
  shape.embedding_scale = 8;
  shape.activation = GateActivation::gelu_tanh;
  return shape;
}

inline std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocabulary = 80) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 13 * i + 5) % vocabulary));
  }
  return tokens;
}

inline IncrementalDecoder decoder_of(const TinyModel& model, DecoderArmOptions options) {
  Result<IncrementalDecoder> made =
      IncrementalDecoder::make(model.shape(), model.weights(), options);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

inline DecoderArmOptions arm(std::string_view dispatch,
                             const softfloat::Format& storage = softfloat::bfloat16) {
  return {.dispatch = DispatchChoice::named(dispatch).value(), .storage = storage};
}

/// The passes of one cache constructor over all tokens, by their lengths; the logits of every row
/// that they give, one after another.
inline std::vector<double> run_passes(IncrementalDecoder& decoder, KvCache& cache,
                                      const std::vector<std::int32_t>& tokens,
                                      const std::vector<std::int64_t>& lengths) {
  std::vector<double> logits;
  std::int64_t row = 0;
  for (const std::int64_t length : lengths) {
    DecoderPass pass;
    pass.tokens =
        std::span(tokens).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(length));
    pass.first_row = row;
    pass.all_logits = true;
    const Result<DecoderPassResult> result = decoder.pass(cache, pass);
    EXPECT_TRUE(result) << result.error().message;
    if (!result) return {};
    logits.insert(logits.end(), result->logits.begin(), result->logits.end());
    row += length;
  }
  return logits;
}

inline constexpr std::int64_t sequence_length = 24;

/// The passes of `live`: 12 tokens of a prompt at once, then one by one.
inline const std::vector<std::int64_t> live_passes{12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

inline std::vector<double> logits_of(const TinyModel& model, const DecoderArmOptions& options,
                                     const std::vector<std::int64_t>& lengths) {
  IncrementalDecoder decoder = decoder_of(model, options);
  KvCache cache = decoder.new_cache();
  return run_passes(decoder, cache, some_tokens(sequence_length), lengths);
}

}  // namespace kvsim::test
