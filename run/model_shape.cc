// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/model_shape.h"

#include <fmt/format.h>

#include <cmath>

namespace kvsim {
namespace {

RopeScalingKind scaling_kind(ConfigRopeScaling kind) {
  switch (kind) {
    case ConfigRopeScaling::linear:
      return RopeScalingKind::linear;
    case ConfigRopeScaling::llama3:
      return RopeScalingKind::llama3;
    case ConfigRopeScaling::none:
      break;
  }
  return RopeScalingKind::none;
}

GateActivation activation_of(const ModelConfig& config) {
  if (config.activation == "gelu") return GateActivation::gelu;
  if (config.activation == "gelu_tanh") return GateActivation::gelu_tanh;
  return GateActivation::silu;
}

}  // namespace

Result<DecoderShape> decoder_shape(const ModelConfig& config) {
  DecoderShape shape;
  shape.name = config.name;
  shape.layers = config.layers;
  shape.hidden = config.hidden;
  shape.ffn = config.ffn;
  shape.query_heads = config.query_heads;
  shape.kv_heads = config.kv_heads;
  shape.head_dim = config.head_dim;
  shape.vocabulary = config.vocabulary;
  shape.norm_epsilon = config.norm_epsilon;
  shape.norm_weight_plus_one = config.norm_weight_plus_one;
  shape.sandwich_norms = config.sandwich_norms;
  shape.qk_norm = config.qk_norm;
  shape.qkv_bias = config.qkv_bias;
  shape.output_bias = config.output_bias;
  shape.mlp_bias = config.mlp_bias;
  shape.rope_base = config.rope_base;
  shape.rope_interleaved = config.rope_interleaved;
  shape.window_rope_base = config.window_rope_base;
  shape.rope_scaling = {scaling_kind(config.rope_scaling), config.rope_factor,
                        config.rope_low_frequency_factor, config.rope_high_frequency_factor,
                        config.rope_original_positions};
  shape.window = config.window;
  if (config.window > 0) shape.has_window = config.has_window;
  if (config.query_pre_attn_scalar > 0) {
    shape.attention_scale = 1 / std::sqrt(config.query_pre_attn_scalar);
  }
  shape.attention_soft_cap = config.attention_soft_cap;
  shape.final_soft_cap = config.final_soft_cap;
  if (config.scaled_embedding) {
    shape.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  }
  shape.activation = activation_of(config);
  if (config.query_pre_attn_scalar > 0 && static_cast<float>(shape.attention_scale) == 0) {
    return Error{ErrorKind::usage,
                 fmt::format("query_pre_attn_scalar {}: 1 ÷ its root must not be 0 in binary32",
                             config.query_pre_attn_scalar)};
  }
  const Result<bool> check = check_shape(shape);
  if (!check) return check.error();
  return shape;
}

ScoreRule score_rule(const DecoderShape& shape, std::int64_t layer) {
  const double usual = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  return {.scale = shape.attention_scale > 0 ? shape.attention_scale : usual,
          .soft_cap = shape.attention_soft_cap,
          .window = shape.windowed(layer) ? shape.window : 0};
}

}  // namespace kvsim
