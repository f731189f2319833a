// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "model/gguf_rope.h"
#include "model/quote.h"

namespace kvsim {
namespace {

using Json = nlohmann::ordered_json;

// Keys of "<architecture>." that are read here, or change no arithmetic of these models.
constexpr auto known_keys = std::to_array<std::string_view>({
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.value_length",
    "attn_logit_softcapping",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "vocab_size",
});

/// The shortest decimal that is this binary32 number, as a binary64: 1e-05 for 1e-05F.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// Reads keys; remembers the first problem.
class ConfigWriter {
 public:
  ConfigWriter(const GgufMetadata& metadata, std::span<const GgufTensor> tensors,
               const GgufArchitecture& architecture, std::string_view source)
      : metadata_(metadata), tensors_(tensors), architecture_(architecture), source_(source) {}

  Result<GgufConfigTexts> write(Dtype dtype) {
    check_keys();
    sizes();
    arithmetic();
    rope();
    windows();
    const Json ids = token_ids();
    json_.update(ids);
    json_["torch_dtype"] = dtype == Dtype::f32 ? "float32" : "bfloat16";
    if (error_) return *error_;
    Json generation = Json::object();
    generation.update(ids);
    return GgufConfigTexts{json_.dump(2) + "\n", generation.dump(2) + "\n"};
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const {
    return fmt::format("{}.{}", architecture_.name, name);
  }

  void fail(std::string_view problem) {
    if (!error_) error_ = Error{ErrorKind::file, fmt::format("{}: {}", source_, problem)};
  }

  std::optional<std::int64_t> whole(std::string_view name) {
    const auto value = metadata_.whole(key(name));
    if (value) return *value;
    if (!error_) error_ = value.error();
    return std::nullopt;
  }
  std::int64_t required(std::string_view name) {
    const auto value = whole(name);
    if (!value || *value < 1) {
      fail(fmt::format("key {} is {}; accepted: a whole number of at least 1", key(name),
                       value ? std::to_string(*value) : "missing"));
    }
    return value.value_or(1);
  }
  std::optional<float> number(std::string_view name) {
    const auto value = metadata_.number(key(name));
    if (value) return *value;
    if (!error_) error_ = value.error();
    return std::nullopt;
  }
  float required_number(std::string_view name) {
    const auto value = number(name);
    if (!value) fail(fmt::format("key {} is missing; accepted: a float32", key(name)));
    return value.value_or(1);
  }
  [[nodiscard]] bool has_tensor(std::string_view name) const {
    return std::ranges::find(tensors_, name, &GgufTensor::name) != tensors_.end();
  }

  void check_keys() {
    const std::string prefix = key("");
    for (const GgufEntry& entry : metadata_.entries()) {
      if (!entry.key.starts_with(prefix)) continue;
      const std::string_view name = entry.key.substr(prefix.size());
      if (std::ranges::find(known_keys, name) == known_keys.end()) {
        fail(
            fmt::format("key {} may change arithmetic in a way that is not known here; accepted: "
                        "files without it",
                        quote(entry.key)));
      }
    }
    if (whole("expert_count").value_or(0) != 0) {
      fail(fmt::format("key {} is not 0: a mixture of experts; accepted: dense models",
                       key("expert_count")));
    }
    const auto causal = metadata_.boolean(key("attention.causal"));
    if (!causal || !causal->value_or(true)) {
      fail(fmt::format("key {} is not true; accepted: decoders", key("attention.causal")));
    }
    const auto split = metadata_.whole("split.count");
    if (split && split->value_or(1) > 1) {
      fail(fmt::format("split.count is {}: one of several files; accepted: a model in one file",
                       split->value_or(1)));
    }
  }

  void sizes() {
    json_["architectures"] = {architecture_.class_name};
    json_["model_type"] = architecture_.model_type;
    json_["vocab_size"] = vocabulary();
    hidden_ = required("embedding_length");
    layers_ = required("block_count");
    heads_ = required("attention.head_count");
    json_["hidden_size"] = hidden_;
    json_["intermediate_size"] = required("feed_forward_length");
    json_["num_hidden_layers"] = layers_;
    json_["num_attention_heads"] = heads_;
    json_["num_key_value_heads"] = whole("attention.head_count_kv").value_or(heads_);
    head_dim_ = whole("attention.key_length").value_or(hidden_ / heads_);
    json_["head_dim"] = head_dim_;
    for (const std::string_view name : {"attention.value_length", "rope.dimension_count"}) {
      if (const std::int64_t size = whole(name).value_or(head_dim_); size != head_dim_) {
        fail(fmt::format("key {} is {}; accepted: {}, the size of a head", key(name), size,
                         head_dim_));
      }
    }
    json_["max_position_embeddings"] = required("context_length");
  }

  /// Rows of the embedding: a file without vocab_size may have more than it has tokens.
  std::int64_t vocabulary() {
    const auto embedding = std::ranges::find(tensors_, "token_embd.weight", &GgufTensor::name);
    if (embedding == tensors_.end() || embedding->shape.size() != 2) {
      fail(
          "tensor \"token_embd.weight\" [vocabulary, hidden] is missing; accepted: a model with "
          "weights");
      return 1;
    }
    const auto tokens = metadata_.array("tokenizer.ggml.tokens", GgufType::text);
    const std::int64_t rows = embedding->shape.front();
    if (tokens && *tokens != nullptr && static_cast<std::int64_t>((*tokens)->size) > rows) {
      fail(
          fmt::format("{} tokens and {} rows of token_embd.weight; accepted: at least one row for "
                      "each token",
                      (*tokens)->size, rows));
    }
    return rows;
  }

  void arithmetic() {
    json_[architecture_.gemma ? "hidden_activation" : "hidden_act"] =
        architecture_.gemma ? "gelu_pytorch_tanh" : "silu";
    json_["rms_norm_eps"] = shortest(required_number("attention.layer_norm_rms_epsilon"));
    json_["tie_word_embeddings"] = !has_tensor("output.weight");
    if (architecture_.model_type != "qwen2") {
      json_["attention_bias"] = has_tensor("blk.0.attn_q.bias");
    }
    if (architecture_.model_type == "llama") json_["mlp_bias"] = has_tensor("blk.0.ffn_gate.bias");
    if (!architecture_.gemma) {
      for (const std::string_view name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
        if (metadata_.find(key(name)) != nullptr) {
          fail(fmt::format("key {} on a model without soft caps; accepted: gemma", key(name)));
        }
      }
      return;
    }
    json_["query_pre_attn_scalar"] =
        layers_ == architecture_.wide_layers ? hidden_ / heads_ : head_dim_;
    // Gemma 3's class reads no cap of the scores.
    if (architecture_.name == "gemma2") cap("attn_logit_softcapping");
    cap("final_logit_softcapping");
  }

  void cap(std::string_view name) {
    const auto value = number(name);
    json_[std::string(name)] = value ? Json(shortest(*value)) : Json(nullptr);
  }

  void rope() {
    const auto base = number("rope.freq_base");
    // The converter leaves the key out where the base is the usual one.
    json_["rope_theta"] = shortest(base.value_or(architecture_.name == "gemma3" ? 1e6F : 1e4F));
    if (architecture_.name == "gemma3") {
      json_["rope_local_base_freq"] = shortest(number("rope.freq_base_swa").value_or(1e4F));
    }
    const auto factors = std::ranges::find(tensors_, rope_factors_tensor, &GgufTensor::name);
    if (factors != tensors_.end() && architecture_.name == "llama") {
      llama3_rope(*factors, base.value_or(1e4F));
      return;
    }
    const auto kind = metadata_.text(key("rope.scaling.type"));
    if (!kind) {
      if (!error_) error_ = kind.error();
      return;
    }
    const std::string_view name = kind->value_or("none");
    if (name == "linear") {
      json_["rope_scaling"] = {{"rope_type", "linear"},
                               {"factor", shortest(required_number("rope.scaling.factor"))}};
    } else if (name != "none") {
      fail(fmt::format("key {} is {}; accepted: none, linear", key("rope.scaling.type"),
                       quote(name)));
    }
  }

  void llama3_rope(const GgufTensor& tensor, float base) {
    if (metadata_.find(key("rope.scaling.type")) != nullptr) {
      fail(fmt::format("tensor \"rope_freqs.weight\" beside key {}; accepted: one of them",
                       key("rope.scaling.type")));
      return;
    }
    std::optional<Llama3RopeScaling> scaling;
    if (tensor.encoding == "F32") {
      std::vector<float> factors(tensor.data.size() / sizeof(float));
      std::memcpy(factors.data(), tensor.data.data(), factors.size() * sizeof(float));
      scaling = llama3_rope_scaling(factors, static_cast<double>(base), head_dim_);
    }
    if (!scaling) {
      fail(
          "tensor \"rope_freqs.weight\" scales RoPE in a way that is not known here; accepted: the "
          "float32 factors of Llama 3.1 (low_freq_factor 1, high_freq_factor 4, 8192 original "
          "positions), or the model's Hugging Face folder");
      return;
    }
    json_["rope_scaling"] = {{"rope_type", "llama3"},
                             {"factor", shortest(static_cast<float>(scaling->factor))},
                             {"low_freq_factor", scaling->low_frequency_factor},
                             {"high_freq_factor", scaling->high_frequency_factor},
                             {"original_max_position_embeddings",
                              static_cast<std::int64_t>(scaling->original_positions)}};
  }

  void windows() {
    const auto window = whole("attention.sliding_window");
    if (architecture_.pattern == 0) {
      if (window) {
        fail(fmt::format("key {} on a model without windows; accepted: gemma2, gemma3",
                         key("attention.sliding_window")));
      }
      return;
    }
    json_["sliding_window"] = required("attention.sliding_window");
    std::int64_t pattern = architecture_.pattern;
    if (metadata_.find(key("attention.sliding_window_pattern")) != nullptr) {
      pattern = required("attention.sliding_window_pattern");
    }
    Json types = Json::array();
    for (std::int64_t layer = 1; layer <= layers_ && layer <= most_layers; ++layer) {
      types.push_back(layer % pattern == 0 ? "full_attention" : "sliding_attention");
    }
    json_["layer_types"] = std::move(types);
  }

  /// bos and eos; a chat model has a second eos, which ends a turn.
  Json token_ids() {
    Json ids = Json::object();
    const auto id = [&](std::string_view name) -> std::optional<std::int64_t> {
      const auto value = metadata_.whole(fmt::format("tokenizer.ggml.{}_token_id", name));
      if (value) return *value;
      if (!error_) error_ = value.error();
      return std::nullopt;
    };
    if (const auto bos = id("bos")) ids["bos_token_id"] = *bos;
    std::vector<std::int64_t> ends;
    for (const std::string_view name : {"eos", "eot"}) {
      const auto end = id(name);
      if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
    }
    if (ends.size() == 1) ids["eos_token_id"] = ends.front();
    if (ends.size() > 1) ids["eos_token_id"] = ends;
    return ids;
  }

  static constexpr std::int64_t most_layers = 4096;  // parse_config refuses more

  const GgufMetadata& metadata_;
  std::span<const GgufTensor> tensors_;
  const GgufArchitecture& architecture_;
  std::string_view source_;
  std::optional<Error> error_;
  Json json_ = Json::object();
  std::int64_t hidden_ = 1;
  std::int64_t layers_ = 1;
  std::int64_t heads_ = 1;
  std::int64_t head_dim_ = 1;
};

}  // namespace

Result<GgufConfigTexts> gguf_config(const GgufMetadata& metadata,
                                    std::span<const GgufTensor> tensors,
                                    const GgufArchitecture& architecture, Dtype dtype,
                                    std::string_view source) {
  return ConfigWriter(metadata, tensors, architecture, source).write(dtype);
}

}  // namespace kvsim
