// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/weight_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kvsim {
namespace {

using Role = WeightRole;
using Size = WeightSize;
using When = WeightPresence;

// Source: the model classes of transformers 5.24.0 (src/transformers/models/{llama,mistral,gemma2,
// gemma3,qwen2,qwen3}/modeling_*.py). A Linear layer's weight is [outputs, inputs].
constexpr auto model_rows = std::to_array<WeightRow>({
    {Role::embedding, "embed_tokens.weight", Size::vocabulary, Size::hidden},
    {Role::final_norm, "norm.weight", Size::hidden},
    {Role::output, "lm_head.weight", Size::vocabulary, Size::hidden, When::untied},
});

constexpr auto layer_rows = std::to_array<WeightRow>({
    {Role::attention_norm, "input_layernorm.weight", Size::hidden},
    {Role::q, "self_attn.q_proj.weight", Size::query, Size::hidden},
    {Role::k, "self_attn.k_proj.weight", Size::kv, Size::hidden},
    {Role::v, "self_attn.v_proj.weight", Size::kv, Size::hidden},
    {Role::o, "self_attn.o_proj.weight", Size::hidden, Size::query},
    {Role::q_bias, "self_attn.q_proj.bias", Size::query, Size::none, When::qkv_bias},
    {Role::k_bias, "self_attn.k_proj.bias", Size::kv, Size::none, When::qkv_bias},
    {Role::v_bias, "self_attn.v_proj.bias", Size::kv, Size::none, When::qkv_bias},
    {Role::o_bias, "self_attn.o_proj.bias", Size::hidden, Size::none, When::output_bias},
    {Role::q_norm, "self_attn.q_norm.weight", Size::head_dim, Size::none, When::qk_norm},
    {Role::k_norm, "self_attn.k_norm.weight", Size::head_dim, Size::none, When::qk_norm},
    // One name, two meanings: with sandwich norms it follows attention, without them it comes
    // before the MLP.
    {Role::post_attention_norm, "post_attention_layernorm.weight", Size::hidden, Size::none,
     When::sandwich_norms},
    {Role::mlp_norm, "pre_feedforward_layernorm.weight", Size::hidden, Size::none,
     When::sandwich_norms},
    {Role::mlp_norm, "post_attention_layernorm.weight", Size::hidden, Size::none,
     When::no_sandwich_norms},
    {Role::gate, "mlp.gate_proj.weight", Size::ffn, Size::hidden},
    {Role::up, "mlp.up_proj.weight", Size::ffn, Size::hidden},
    {Role::down, "mlp.down_proj.weight", Size::hidden, Size::ffn},
    {Role::gate_bias, "mlp.gate_proj.bias", Size::ffn, Size::none, When::mlp_bias},
    {Role::up_bias, "mlp.up_proj.bias", Size::ffn, Size::none, When::mlp_bias},
    {Role::down_bias, "mlp.down_proj.bias", Size::hidden, Size::none, When::mlp_bias},
    {Role::post_mlp_norm, "post_feedforward_layernorm.weight", Size::hidden, Size::none,
     When::sandwich_norms},
});

constexpr auto prefixes = std::to_array<WeightPrefix>({
    {"model.", "", "…ForCausalLM"},
    {"", "", "…Model, without an output matrix"},
    {"language_model.model.", "language_model.", "Gemma3ForConditionalGeneration, 2025"},
    {"model.language_model.", "", "Gemma3ForConditionalGeneration, 2026"},
});

bool is_present(const ModelConfig& config, WeightPresence presence) {
  switch (presence) {
    case When::always:
      break;
    case When::qkv_bias:
      return config.qkv_bias;
    case When::output_bias:
      return config.output_bias;
    case When::mlp_bias:
      return config.mlp_bias;
    case When::qk_norm:
      return config.qk_norm;
    case When::sandwich_norms:
      return config.sandwich_norms;
    case When::no_sandwich_norms:
      return !config.sandwich_norms;
    case When::untied:
      return !config.tied_embedding;
  }
  return true;
}

std::string_view size_name(WeightSize size) {
  switch (size) {
    case Size::none:
      break;
    case Size::hidden:
      return "hidden";
    case Size::ffn:
      return "ffn";
    case Size::query:
      return "query heads x head_dim";
    case Size::kv:
      return "K/V heads x head_dim";
    case Size::head_dim:
      return "head_dim";
    case Size::vocabulary:
      return "vocabulary";
  }
  return "";
}

ExpectedWeight expected(const ModelConfig& config, const WeightRow& row, std::int64_t layer,
                        std::string name) {
  ExpectedWeight weight{.role = row.role,
                        .layer = layer,
                        .name = std::move(name),
                        .shape = {weight_size(config, row.rows)},
                        .sizes = weight_sizes_text(row.rows, row.columns)};
  if (row.columns != Size::none) weight.shape.push_back(weight_size(config, row.columns));
  return weight;
}

}  // namespace

std::span<const WeightRow> model_weight_rows() { return model_rows; }
std::span<const WeightRow> layer_weight_rows() { return layer_rows; }
std::span<const WeightPrefix> weight_prefixes() { return prefixes; }

bool is_ignored_tensor(std::string_view name) {
  // Llama's RoPE frequencies, which older versions stored.
  if (name.ends_with(".self_attn.rotary_emb.inv_freq")) return true;
  constexpr auto images = std::to_array<std::string_view>({
      "vision_tower.",
      "multi_modal_projector.",
      "model.vision_tower.",
      "model.multi_modal_projector.",
  });
  return std::ranges::any_of(images, [&](std::string_view part) { return name.starts_with(part); });
}

std::int64_t weight_size(const ModelConfig& config, WeightSize size) {
  switch (size) {
    case Size::none:
      break;
    case Size::hidden:
      return config.hidden;
    case Size::ffn:
      return config.ffn;
    case Size::query:
      return config.query_heads * config.head_dim;
    case Size::kv:
      return config.kv_heads * config.head_dim;
    case Size::head_dim:
      return config.head_dim;
    case Size::vocabulary:
      return config.vocabulary;
  }
  return 1;
}

std::string weight_sizes_text(WeightSize rows, WeightSize columns) {
  if (columns == Size::none) return fmt::format("[{}]", size_name(rows));
  return fmt::format("[{}, {}]", size_name(rows), size_name(columns));
}

std::vector<ExpectedWeight> expected_weights(const ModelConfig& config,
                                             const WeightPrefix& prefix) {
  std::vector<ExpectedWeight> weights;
  for (const WeightRow& row : model_rows) {
    if (!is_present(config, row.presence)) continue;
    const std::string_view front = row.role == Role::output ? prefix.output : prefix.model;
    weights.push_back(expected(config, row, -1, fmt::format("{}{}", front, row.name)));
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (const WeightRow& row : layer_rows) {
      if (!is_present(config, row.presence)) continue;
      weights.push_back(expected(config, row, layer,
                                 fmt::format("{}layers.{}.{}", prefix.model, layer, row.name)));
    }
  }
  return weights;
}

}  // namespace kvsim
