// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/gguf_config.h"
#include "model/gguf_rope.h"
#include "model/quote.h"
#include "model/safetensors_header.h"

namespace kvsim {
namespace {

// Which rows are permuted, which norms hold 1 + weight: convert_hf_to_gguf.py of llama.cpp, read in
// 2026-08 (classes LlamaModel, Qwen2Model, Qwen3Model, Gemma2Model, Gemma3Model). The pattern of
// windows and the scale of the largest Gemma: src/llama-model.cpp there.
constexpr std::string_view converter = "llama.cpp, convert_hf_to_gguf.py, 2026-08";
constexpr auto architectures = std::to_array<GgufArchitecture>({
    {.name = "llama",
     .model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .tokenizer = "LlamaTokenizer",
     .permuted = true,
     .source = converter},
    {.name = "gemma2",
     .model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .tokenizer = "GemmaTokenizer",
     .gemma = true,
     .pattern = 2,
     .wide_layers = 46,
     .source = converter},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .tokenizer = "GemmaTokenizer",
     .gemma = true,
     .pattern = 6,
     .wide_layers = 62,
     .source = converter},
    {.name = "qwen2",
     .model_type = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .tokenizer = "Qwen2Tokenizer",
     .source = converter},
    {.name = "qwen3",
     .model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .tokenizer = "Qwen2Tokenizer",
     .source = converter},
});

struct TensorName {
  WeightRole role;
  std::string_view name;  ///< in a layer: after "blk.<i>."
};

// Source: TENSOR_NAMES of gguf 0.19.0 (constants.py).
constexpr auto tensor_names = std::to_array<TensorName>({
    {WeightRole::embedding, "token_embd.weight"},
    {WeightRole::final_norm, "output_norm.weight"},
    {WeightRole::output, "output.weight"},
    {WeightRole::attention_norm, "attn_norm.weight"},
    {WeightRole::q, "attn_q.weight"},
    {WeightRole::k, "attn_k.weight"},
    {WeightRole::v, "attn_v.weight"},
    {WeightRole::o, "attn_output.weight"},
    {WeightRole::q_bias, "attn_q.bias"},
    {WeightRole::k_bias, "attn_k.bias"},
    {WeightRole::v_bias, "attn_v.bias"},
    {WeightRole::o_bias, "attn_output.bias"},
    {WeightRole::q_norm, "attn_q_norm.weight"},
    {WeightRole::k_norm, "attn_k_norm.weight"},
    {WeightRole::post_attention_norm, "post_attention_norm.weight"},
    {WeightRole::mlp_norm, "ffn_norm.weight"},
    {WeightRole::gate, "ffn_gate.weight"},
    {WeightRole::up, "ffn_up.weight"},
    {WeightRole::down, "ffn_down.weight"},
    {WeightRole::gate_bias, "ffn_gate.bias"},
    {WeightRole::up_bias, "ffn_up.bias"},
    {WeightRole::down_bias, "ffn_down.bias"},
    {WeightRole::post_mlp_norm, "post_ffw_norm.weight"},
});

std::string tensor_name(const ExpectedWeight& weight) {
  const auto* row = std::ranges::find(tensor_names, weight.role, &TensorName::role);
  if (row == tensor_names.end()) return {};
  if (weight.layer < 0) return std::string(row->name);
  return fmt::format("blk.{}.{}", weight.layer, row->name);
}

bool is_norm(WeightRole role) {
  using enum WeightRole;
  constexpr std::array norms{final_norm, attention_norm,      q_norm,       k_norm,
                             mlp_norm,   post_attention_norm, post_mlp_norm};
  return std::ranges::find(norms, role) != norms.end();
}

bool is_query_or_key(WeightRole role) {
  using enum WeightRole;
  return role == q || role == k || role == q_bias || role == k_bias;
}

GgufChange change_of(const GgufArchitecture& architecture, WeightRole role) {
  if (architecture.permuted && is_query_or_key(role)) return GgufChange::unpermute;
  if (architecture.gemma && is_norm(role)) return GgufChange::minus_one;
  return GgufChange::none;
}

/// Pairs the weights of the configuration with the file's tensors.
class WeightMatcher {
 public:
  WeightMatcher(std::span<const GgufTensor> tensors, std::string_view source)
      : tensors_(tensors), used_(tensors.size(), false), source_(source) {}

  Result<std::vector<GgufWeight>> match(const GgufArchitecture& architecture,
                                        const ModelConfig& config) {
    std::vector<ExpectedWeight> expected = expected_weights(config, weight_prefixes().front());
    std::vector<GgufWeight> weights;
    weights.reserve(expected.size());
    for (ExpectedWeight& weight : expected) {
      std::string name = tensor_name(weight);
      if (const auto error = take(name, weight, architecture)) return *error;
      const GgufChange change = change_of(architecture, weight.role);
      weights.push_back({std::move(weight), std::move(name), change});
    }
    // Its factors are in the configuration, or were refused.
    const auto factors = std::ranges::find(tensors_, rope_factors_tensor, &GgufTensor::name);
    if (factors != tensors_.end() && config.rope_scaling == ConfigRopeScaling::llama3) {
      used_[static_cast<std::size_t>(factors - tensors_.begin())] = true;
    }
    if (const auto error = check_rest(architecture)) return *error;
    return weights;
  }

 private:
  [[nodiscard]] Error fail(std::string_view problem) const {
    return Error{ErrorKind::file, fmt::format("{}: {}", source_, problem)};
  }

  std::optional<Error> take(std::string_view name, const ExpectedWeight& weight,
                            const GgufArchitecture& architecture) {
    const auto found = std::ranges::find(tensors_, name, &GgufTensor::name);
    if (found == tensors_.end()) {
      return fail(fmt::format("tensor {} {} is missing; accepted: every tensor of a {} model",
                              quote(name), shape_text(weight.shape), architecture.name));
    }
    if (found->shape != weight.shape) {
      return fail(fmt::format(
          "tensor {} has shape {}; accepted: {}, which is {} of the file's keys", quote(name),
          shape_text(found->shape), shape_text(weight.shape), weight.sizes));
    }
    used_[static_cast<std::size_t>(found - tensors_.begin())] = true;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Error> check_rest(const GgufArchitecture& architecture) const {
    const auto left = std::ranges::find(used_, false);
    if (left == used_.end()) return std::nullopt;
    const GgufTensor& tensor = tensors_[static_cast<std::size_t>(left - used_.begin())];
    return fail(fmt::format("tensor {}: no part of a {} model; accepted: its {} tensors",
                            quote(tensor.name), architecture.name,
                            std::ranges::count(used_, true)));
  }

  std::span<const GgufTensor> tensors_;
  std::vector<bool> used_;
  std::string_view source_;
};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return architectures; }

Result<GgufModel> read_gguf_model(const GgufMetadata& metadata, std::span<const GgufTensor> tensors,
                                  Dtype dtype, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  const auto name = metadata.text("general.architecture");
  if (!name) return name.error();
  const auto* architecture =
      std::ranges::find(architectures, name->value_or(""), &GgufArchitecture::name);
  if (architecture == architectures.end()) {
    std::string names;
    for (const GgufArchitecture& row : architectures) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    }
    return fail(fmt::format("general.architecture is {}; accepted: {}",
                            *name ? quote(name->value_or("")) : "missing", names));
  }
  GgufModel model;
  model.architecture = architecture;
  Result<GgufConfigTexts> texts = gguf_config(metadata, tensors, *architecture, dtype, source);
  if (!texts) return texts.error();
  model.config_json = std::move(texts->config);
  model.generation_config = std::move(texts->generation);
  Result<ModelConfig> config = parse_config(model.config_json, "config.json");
  if (!config) return fail(config.error().message);
  model.config = std::move(*config);
  Result<std::vector<GgufWeight>> weights =
      WeightMatcher(tensors, source).match(*architecture, model.config);
  if (!weights) return weights.error();
  model.weights = std::move(*weights);
  return model;
}

void unpermute_head(std::span<float> rows, std::int64_t columns) {
  const auto width = static_cast<std::size_t>(columns);
  const std::size_t half = rows.size() / width / 2;
  const std::vector<float> stored(rows.begin(), rows.end());
  for (std::size_t i = 0; i < half; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>((2 * i + j) * width), width,
                  rows.begin() + static_cast<std::ptrdiff_t>((j * half + i) * width));
    }
  }
}

}  // namespace kvsim
