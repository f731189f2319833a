// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/decoder/weights_view.h"
#include "sim/decoder_shape.h"
#include "sim/engine/columns.h"
#include "sim/random_weights.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {

/// A random model in memory, weights in bfloat16 or binary32, on which every feature acts.
class SmallModel {
 public:
  explicit SmallModel(DecoderShape shape, const softfloat::Format& format = softfloat::bfloat16,
                      std::uint64_t seed = 7)
      : shape_(std::move(shape)), format_(format), seed_(seed) {
    const std::int64_t hidden = shape_.hidden;
    const std::int64_t query = shape_.query_heads * shape_.head_dim;
    const std::int64_t kv = shape_.kv_heads * shape_.head_dim;
    const float norm = shape_.norm_weight_plus_one ? 0.0F : 1.0F;
    weights_.embedding = draw(shape_.vocabulary, hidden, 0, 1);
    weights_.final_norm = draw(1, hidden, norm, 0.1F);
    weights_.layers.reserve(static_cast<std::size_t>(shape_.layers));
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

  // The weights point into the model.
  SmallModel(const SmallModel&) = delete;
  SmallModel& operator=(const SmallModel&) = delete;
  SmallModel(SmallModel&&) = default;
  SmallModel& operator=(SmallModel&&) = default;
  ~SmallModel() = default;

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
    chosen.reserve(rows.size() * static_cast<std::size_t>(from.columns));
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
    const RandomWeights weights{seed_, ++stream_, softfloat::binary32, deviation};
    static_cast<void>(fill_random_weights(weights, 0, values));
    for (float& x : values) x += center;
    static_cast<void>(round_values(format_, values, values));
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
  std::uint64_t seed_;
  DecoderWeights weights_;
  std::deque<std::vector<std::uint16_t>> codes_;
  std::deque<std::vector<float>> floats_;
  std::uint64_t stream_ = std::uint64_t{1} << 62U;
};

}  // namespace kvsim::fuzz
