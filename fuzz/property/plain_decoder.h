// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "fuzz/property/small_model.h"
#include "fuzz/property/wide_number.h"

/// A whole decoder once more, token by token, in plain binary64 with the C library's functions:
/// good enough for a comparison with a tolerance, never for a result.
namespace kvsim::fuzz {

using Row = std::vector<double>;

class PlainDecoder {
 public:
  explicit PlainDecoder(const SmallModel& model) : m_(model), s_(model.shape()) {}

  /// The logits of every row, one after another.
  Row logits(const std::vector<std::int32_t>& tokens) const {
    std::vector<Row> hidden;
    const Row embedding = m_.numbers(m_.weights().embedding);
    for (const std::int32_t token : tokens) {
      Row row(embedding.begin() + token * s_.hidden, embedding.begin() + (token + 1) * s_.hidden);
      for (double& x : row) x *= s_.embedding_scale;
      hidden.push_back(row);
    }
    for (std::int64_t i = 0; i < s_.layers; ++i) layer(i, hidden);
    Row all;
    for (const Row& row : hidden) {
      const Row out = times(norm(row, m_.weights().final_norm), m_.weights().embedding, {});
      for (double x : out) {
        if (s_.final_soft_cap > 0)
          x = s_.final_soft_cap * by_mpfr(mpfr_tanh, x / s_.final_soft_cap);
        all.push_back(x);
      }
    }
    return all;
  }

 private:
  Row norm(const Row& x, const WeightView& weight) const {
    const Row w = m_.numbers(weight);
    Row out;
    for (std::size_t begin = 0; begin < x.size(); begin += w.size()) {
      double squares = 0;
      for (std::size_t i = 0; i < w.size(); ++i) squares += x[begin + i] * x[begin + i];
      const double root = std::sqrt(squares / static_cast<double>(w.size()) + s_.norm_epsilon);
      for (std::size_t i = 0; i < w.size(); ++i) {
        out.push_back(x[begin + i] / root * (w[i] + (s_.norm_weight_plus_one ? 1 : 0)));
      }
    }
    return out;
  }
  Row times(const Row& x, const WeightView& weight, const WeightView& bias) const {
    const Row w = m_.numbers(weight);
    Row out = bias.present() ? m_.numbers(bias) : Row(static_cast<std::size_t>(weight.rows));
    for (std::size_t j = 0; j < out.size(); ++j) {
      for (std::size_t k = 0; k < x.size(); ++k) out[j] += w[j * x.size() + k] * x[k];
    }
    return out;
  }
  double frequency(std::int64_t i, bool windowed) const {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(s_.head_dim);
    if (windowed && s_.window_rope_base > 0) return power_by_mpfr(s_.window_rope_base, exponent);
    const double f = power_by_mpfr(s_.rope_base, exponent);
    const RopeScaling& r = s_.rope_scaling;
    if (r.kind == RopeScalingKind::none) return f;
    if (r.kind == RopeScalingKind::linear) return f / r.factor;
    const double turns = static_cast<double>(r.original_positions) * f / (2 * std::numbers::pi);
    if (turns > r.high_frequency_factor) return f;
    if (turns < r.low_frequency_factor) return f / r.factor;
    const double share =
        (turns - r.low_frequency_factor) / (r.high_frequency_factor - r.low_frequency_factor);
    return (1 - share) * f / r.factor + share * f;
  }
  void rotate(Row& heads, std::int64_t position, bool windowed) const {
    const auto d = static_cast<std::size_t>(s_.head_dim);
    for (std::size_t head = 0; head < heads.size(); head += d) {
      for (std::size_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(position) * frequency(static_cast<std::int64_t>(i), windowed);
        const std::size_t first = head + (s_.rope_interleaved ? 2 * i : i);
        const std::size_t second = head + (s_.rope_interleaved ? 2 * i + 1 : i + d / 2);
        const double a = heads[first];
        const double b = heads[second];
        heads[first] = a * by_mpfr(mpfr_cos, angle) - b * by_mpfr(mpfr_sin, angle);
        heads[second] = a * by_mpfr(mpfr_sin, angle) + b * by_mpfr(mpfr_cos, angle);
      }
    }
  }
  Row attention(const Row& q, const std::vector<Row>& k, const std::vector<Row>& v,
                std::size_t token, std::int64_t window) const {
    const auto d = static_cast<std::size_t>(s_.head_dim);
    const double scale =
        s_.attention_scale > 0 ? s_.attention_scale : power_by_mpfr(static_cast<double>(d), -0.5);
    const std::size_t group = static_cast<std::size_t>(s_.query_heads / s_.kv_heads);
    Row out(q.size());
    for (std::size_t head = 0; head < static_cast<std::size_t>(s_.query_heads); ++head) {
      const std::size_t kv = head / group * d;
      double sum = 0;
      Row mixed(d);
      for (std::size_t key = 0; key <= token; ++key) {
        if (window > 0 && static_cast<std::int64_t>(token - key) >= window) continue;
        double score = 0;
        for (std::size_t i = 0; i < d; ++i) score += q[head * d + i] * k[key][kv + i];
        score *= scale;
        const double cap = s_.attention_soft_cap;
        if (cap > 0) score = cap * by_mpfr(mpfr_tanh, score / cap);
        const double p = by_mpfr(mpfr_exp, score);
        sum += p;
        for (std::size_t i = 0; i < d; ++i) mixed[i] += p * v[key][kv + i];
      }
      for (std::size_t i = 0; i < d; ++i) out[head * d + i] = mixed[i] / sum;
    }
    return out;
  }
  double activate(double x) const {
    switch (s_.activation) {
      case GateActivation::silu:
        return x / (1 + by_mpfr(mpfr_exp, -x));
      case GateActivation::gelu:
        return x / 2 * (1 + by_mpfr(mpfr_erf, x / std::sqrt(2.0)));
      case GateActivation::gelu_tanh:
        break;
    }
    return x / 2 *
           (1 + by_mpfr(mpfr_tanh, std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  void add(Row& hidden, Row branch, const WeightView& post_norm) const {
    if (s_.sandwich_norms) branch = norm(branch, post_norm);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += branch[i];
  }
  void layer(std::int64_t index, std::vector<Row>& hidden) const {
    const DecoderLayerWeights& w = m_.weights().layers[static_cast<std::size_t>(index)];
    const bool windowed = s_.windowed(index);
    std::vector<Row> q, k, v;
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Row x = norm(hidden[t], w.attention_norm);
      q.push_back(times(x, w.query, w.query_bias));
      k.push_back(times(x, w.key, w.key_bias));
      v.push_back(times(x, w.value, w.value_bias));
      if (s_.qk_norm) q.back() = norm(q.back(), w.query_norm);
      if (s_.qk_norm) k.back() = norm(k.back(), w.key_norm);
      rotate(q.back(), static_cast<std::int64_t>(t), windowed);
      rotate(k.back(), static_cast<std::int64_t>(t), windowed);
    }
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Row attended = attention(q[t], k, v, t, windowed ? s_.window : 0);
      add(hidden[t], times(attended, w.output, w.output_bias), w.attention_post_norm);
      const Row x = norm(hidden[t], w.mlp_norm);
      Row gate = times(x, w.gate, w.gate_bias);
      const Row up = times(x, w.up, w.up_bias);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = activate(gate[i]) * up[i];
      add(hidden[t], times(gate, w.down, w.down_bias), w.mlp_post_norm);
    }
  }

  const SmallModel& m_;
  const DecoderShape& s_;
};

}  // namespace kvsim::fuzz
