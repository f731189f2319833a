// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace kvsim {

/// What a weight does in the decoder.
enum class WeightRole : std::uint8_t {
  embedding,       ///< one row per token
  final_norm,      ///< before the output matrix
  output,          ///< one row per token; where it is tied, the embedding
  attention_norm,  ///< before attention
  q,               ///< projections of attention, one row per output
  k,
  v,
  o,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  q_norm,               ///< of each query head before RoPE
  k_norm,               ///< of each key head before RoPE
  post_attention_norm,  ///< Gemma: of attention's output, before the residual is added
  mlp_norm,             ///< before the MLP
  gate,                 ///< the projection that goes through the activation
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  post_mlp_norm,  ///< Gemma: of the MLP's output, before the residual is added
};

/// A size of a weight, as a field of ModelConfig or a product of two.
enum class WeightSize : std::uint8_t {
  none,  ///< the weight is a vector
  hidden,
  ffn,
  query,  ///< query_heads × head_dim
  kv,     ///< kv_heads × head_dim
  head_dim,
  vocabulary,
};

/// Which models have a weight.
enum class WeightPresence : std::uint8_t {
  always,
  qkv_bias,
  output_bias,
  mlp_bias,
  qk_norm,
  sandwich_norms,
  no_sandwich_norms,
  untied,  ///< the output matrix is not the embedding
};

/// One weight of the model families, as a safetensors file names it.
struct WeightRow {
  WeightRole role;
  std::string_view name;  ///< in a layer: after "layers.<i>."; "lm_head.weight" has no prefix
  WeightSize rows;        ///< of a vector: its length
  WeightSize columns = WeightSize::none;
  WeightPresence presence = WeightPresence::always;
};

/// Weights that stand once, and those of every layer. One table serves all families: they differ
/// in what is present, which ModelConfig says.
[[nodiscard]] std::span<const WeightRow> model_weight_rows();
[[nodiscard]] std::span<const WeightRow> layer_weight_rows();

/// How the names of a checkpoint begin; it depends on the class that wrote it.
struct WeightPrefix {
  std::string_view model;    ///< before "embed_tokens.weight" and "layers.<i>."
  std::string_view output;   ///< before "lm_head.weight"
  std::string_view written;  ///< by which class
};
[[nodiscard]] std::span<const WeightPrefix> weight_prefixes();

/// Whether a tensor of that name stands in checkpoints of these families although a text model does
/// not read it: tables that follow from config.json, and the image part of Gemma 3.
[[nodiscard]] bool is_ignored_tensor(std::string_view name);

/// A weight that a model must have.
struct ExpectedWeight {
  WeightRole role = WeightRole::embedding;
  std::int64_t layer = -1;          ///< -1: of the whole model
  std::string name;                 ///< in the file
  std::vector<std::int64_t> shape;  ///< one or two sizes
  std::string sizes;                ///< what they are, for people: "[vocabulary, hidden]"
};

/// The number that a size stands for.
[[nodiscard]] std::int64_t weight_size(const ModelConfig& config, WeightSize size);

/// Every weight of the model: first those that stand once, then layer by layer, each in the order
/// of its table.
[[nodiscard]] std::vector<ExpectedWeight> expected_weights(const ModelConfig& config,
                                                           const WeightPrefix& prefix);

/// "[vocabulary, hidden]", or with columns none "[hidden]".
[[nodiscard]] std::string weight_sizes_text(WeightSize rows, WeightSize columns);

}  // namespace kvsim
