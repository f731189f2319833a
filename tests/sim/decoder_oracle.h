// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sim/decoder.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"
#include "sim/random_weights.h"

/// The seeded decoder once more: one layer after the other, the operators called by hand.
namespace kvsim::test {

using Matrix = std::vector<float>;

inline Matrix drawn(const DecoderOptions& options, std::int64_t layer, std::uint64_t kind,
                    std::int64_t count, double center, double deviation) {
  const std::uint64_t stream =
      0x8000000000000000ULL + static_cast<std::uint64_t>(layer) * 256 + kind;
  Matrix x(static_cast<std::size_t>(count));
  // Tensors without a center are rounded once; those with one are drawn in binary32 first.
  const bool is_matrix = kind < 16;
  EXPECT_TRUE(
      fill_random_weights({options.seed, stream, is_matrix ? options.storage : softfloat::binary32,
                           static_cast<float>(deviation)},
                          0, x));
  if (is_matrix) return x;
  for (float& value : x) value = static_cast<float>(center) + value;
  EXPECT_TRUE(round_values(options.storage, x, x));
  return x;
}

/// What the layers of one model hold, in the formats of DecoderShape.
class PlainDecoder {
 public:
  explicit PlainDecoder(const DecoderOptions& options)
      : o_(options), s_(options.shape), tokens_(options.prefix + 1) {}

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] Matrix first_hidden() const {
    return drawn(o_, 65536, 64, tokens_ * s_.hidden, 0, s_.embedding_scale);
  }
  [[nodiscard]] Matrix weights(std::int64_t layer, std::uint64_t kind, std::int64_t terms,
                               std::int64_t outputs) const {
    return drawn(o_, layer, kind, terms * outputs, 0, 1 / std::sqrt(static_cast<double>(terms)));
  }
  [[nodiscard]] Matrix norm_weight(std::int64_t layer, std::uint64_t kind,
                                   std::int64_t width) const {
    return drawn(o_, layer, kind, width, s_.norm_weight_plus_one ? 0 : 1, 0.1F);
  }
  [[nodiscard]] Matrix bias(std::int64_t layer, std::uint64_t kind, std::int64_t width) const {
    return drawn(o_, layer, kind + 32, width, 0, 0.1F);
  }
  [[nodiscard]] RopeTable table(const RopeKernel& kernel, std::int64_t layer) const {
    const bool own = s_.windowed(layer) && s_.window_rope_base > 0;
    std::vector<float> frequencies;
    if (!own && s_.rope_scaling.kind == RopeScalingKind::linear) {
      for (std::int64_t i = 0; i < s_.head_dim / 2; ++i) {
        const double exact = std::pow(
            s_.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(s_.head_dim));
        frequencies.push_back(static_cast<float>(exact) /
                              static_cast<float>(s_.rope_scaling.factor));
      }
    }
    const auto made = make_rope_table(kernel, {.storage = o_.storage,
                                               .rotated = s_.head_dim,
                                               .base = own ? s_.window_rope_base : s_.rope_base,
                                               .positions = tokens_,
                                               .custom_frequencies = frequencies});
    EXPECT_TRUE(made);
    return *made;
  }

 protected:
  const DecoderOptions& o_;
  const DecoderShape& s_;
  std::int64_t tokens_;
};

/// Computed by the kernels of one dispatch; the last token alone, or with the others.
class PlainKernelDecoder : public PlainDecoder {
 public:
  PlainKernelDecoder(const DecoderOptions& options, const Dispatch& dispatch, bool last_alone)
      : PlainDecoder(options), d_(dispatch), last_alone_(last_alone) {}

  /// The last token's hidden state.
  Matrix run() {
    Matrix hidden = first_hidden();
    for (std::int64_t layer = 0; layer < s_.layers; ++layer) {
      const Matrix x = norm(hidden, norm_weight(layer, 16, s_.hidden), s_.hidden);
      Matrix branch = attention(layer, x);
      if (s_.sandwich_norms) branch = norm(branch, norm_weight(layer, 18, s_.hidden), s_.hidden);
      hidden = sum(hidden, branch);
      branch = mlp(layer, norm(hidden, norm_weight(layer, 17, s_.hidden), s_.hidden));
      if (s_.sandwich_norms) branch = norm(branch, norm_weight(layer, 19, s_.hidden), s_.hidden);
      hidden = sum(hidden, branch);
    }
    return {hidden.end() - s_.hidden, hidden.end()};
  }

 private:
  Matrix norm(const Matrix& x, const Matrix& weight, std::int64_t width) const {
    Matrix out(x.size());
    const std::string_view name = s_.norm_weight_plus_one ? d_.norm_plus_one : d_.norm;
    EXPECT_TRUE(apply_norm(*find_norm_kernel(name),
                           {.storage = o_.storage,
                            .rows = static_cast<std::int64_t>(x.size()) / width,
                            .columns = width,
                            .x = x.data(),
                            .weight = weight.data(),
                            .epsilon = s_.norm_epsilon},
                           out.data()));
    return out;
  }
  Matrix sum(const Matrix& x, const Matrix& y) const {
    Matrix out(x.size());
    EXPECT_TRUE(add_residual(*find_residual_kernel(d_.residual), o_.storage, x, y, out));
    return out;
  }
  Matrix linear(std::int64_t layer, std::uint64_t kind, const Matrix& x, std::int64_t outputs,
                bool has_bias) const {
    const std::int64_t terms = static_cast<std::int64_t>(x.size()) / tokens_;
    const Matrix w = weights(layer, kind, terms, outputs);
    const Matrix b = has_bias ? bias(layer, kind, outputs) : Matrix();
    Matrix out(static_cast<std::size_t>(tokens_ * outputs));
    const auto rows = [&](std::int64_t first, std::int64_t count) {
      const LinearKernel* kernel = linear_kernel_for(d_, count).value();
      EXPECT_TRUE(apply_linear(*kernel,
                               {.rows = count,
                                .outputs = outputs,
                                .terms = terms,
                                .storage = o_.storage,
                                .multiprocessors = d_.multiprocessors,
                                .x = x.data() + first * terms,
                                .x_stride = terms,
                                .w = w.data(),
                                .w_stride = outputs,
                                .bias = has_bias ? b.data() : nullptr},
                               out.data() + first * outputs, outputs));
    };
    if (last_alone_) {
      rows(0, tokens_ - 1);
      rows(tokens_ - 1, 1);
    } else {
      rows(0, tokens_);
    }
    return out;
  }
  /// [tokens][heads · d] as [heads][tokens][d].
  [[nodiscard]] Matrix by_heads(const Matrix& x) const {
    Matrix out;
    const std::int64_t width = static_cast<std::int64_t>(x.size()) / tokens_;
    for (std::int64_t head = 0; head < width; head += s_.head_dim) {
      for (std::int64_t token = 0; token < tokens_; ++token) {
        const auto begin = x.begin() + token * width + head;
        out.insert(out.end(), begin, begin + s_.head_dim);
      }
    }
    return out;
  }
  Matrix rotated(const Matrix& x, const RopeKernel& kernel, const RopeTable& rope) const {
    Matrix heads = by_heads(x);
    EXPECT_TRUE(apply_rope(kernel, rope,
                           {.storage = o_.storage,
                            .heads = static_cast<std::int64_t>(x.size()) / tokens_ / s_.head_dim,
                            .length = tokens_,
                            .head_dim = s_.head_dim,
                            .x = heads.data()},
                           heads.data()));
    return heads;
  }
  /// Tokens first … first + count − 1 of [heads][tokens][d].
  [[nodiscard]] Matrix cut(const Matrix& heads, std::int64_t first, std::int64_t count) const {
    Matrix out;
    for (std::size_t head = 0; head < heads.size();
         head += static_cast<std::size_t>(tokens_ * s_.head_dim)) {
      const auto begin = heads.begin() + static_cast<std::ptrdiff_t>(head) + first * s_.head_dim;
      out.insert(out.end(), begin, begin + count * s_.head_dim);
    }
    return out;
  }
  Matrix attention(std::int64_t layer, const Matrix& x) const {
    const std::int64_t d = s_.head_dim;
    Matrix q = linear(layer, 0, x, s_.query_heads * d, s_.qkv_bias);
    Matrix k = linear(layer, 1, x, s_.kv_heads * d, s_.qkv_bias);
    const Matrix v = by_heads(linear(layer, 2, x, s_.kv_heads * d, s_.qkv_bias));
    if (s_.qk_norm) {
      q = norm(q, norm_weight(layer, 20, d), d);
      k = norm(k, norm_weight(layer, 21, d), d);
    }
    const RopeKernel& kernel = *find_rope_kernel(d_.rope);
    const RopeTable rope = table(kernel, layer);
    q = rotated(q, kernel, rope);
    k = rotated(k, kernel, rope);
    Matrix attended(static_cast<std::size_t>(tokens_ * s_.query_heads * d));
    const auto part = [&](std::int64_t first, std::int64_t count, std::string_view name) {
      const Matrix queries = cut(q, first, count);
      const Matrix keys = cut(k, 0, first + count);
      const Matrix values = cut(v, 0, first + count);
      AttentionProblem problem;
      problem.shape = {s_.query_heads, s_.kv_heads, count, first + count, d};
      problem.mask.window = s_.windowed(layer) ? s_.window : 0;
      problem.mask.soft_cap = static_cast<float>(s_.attention_soft_cap);
      problem.storage = o_.storage;
      problem.scale = static_cast<float>(s_.attention_scale);
      problem.q = queries.data();
      problem.k = keys.data();
      problem.v = values.data();
      problem.launch.splits = count == 1 ? d_.decode_splits : d_.prefill_splits;
      const auto result = run_attention(*find_attention_kernel(name), problem);
      ASSERT_TRUE(result) << result.error().message;
      for (std::int64_t token = 0; token < count; ++token) {
        for (std::int64_t i = 0; i < s_.query_heads * d; ++i) {
          attended[static_cast<std::size_t>((first + token) * s_.query_heads * d + i)] =
              result->out[static_cast<std::size_t>((i / d * count + token) * d + i % d)];
        }
      }
    };
    if (last_alone_) {
      part(0, tokens_ - 1, d_.attention_prefill);
      part(tokens_ - 1, 1, d_.attention_decode);
    } else {
      part(0, tokens_, d_.attention_prefill);
    }
    return linear(layer, 3, attended, s_.hidden, s_.output_bias);
  }
  Matrix mlp(std::int64_t layer, const Matrix& x) const {
    Matrix gate = linear(layer, 4, x, s_.ffn, s_.mlp_bias);
    const Matrix up = linear(layer, 5, x, s_.ffn, s_.mlp_bias);
    const bool silu = s_.activation == GateActivation::silu;
    EXPECT_TRUE(apply_activation(*find_activation_kernel(silu ? d_.silu : d_.gelu_tanh), o_.storage,
                                 gate, gate));
    EXPECT_TRUE(multiply_elements(o_.storage, gate, up, gate));
    return linear(layer, 6, gate, s_.hidden, s_.mlp_bias);
  }

  const Dispatch& d_;
  bool last_alone_;
};

}  // namespace kvsim::test
