// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/property/small_model.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

namespace kvsim::test {

using TinyModel = fuzz::SmallModel;

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
