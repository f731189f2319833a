// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/evidence.h"
#include "softfloat/result.h"

namespace kvsim {

/// How a model changes its RoPE frequencies.
enum class ConfigRopeScaling : std::uint8_t { none, linear, llama3 };

/// What a model's config.json says, as far as it changes arithmetic. Fields are those of Hugging
/// Face's configuration; where the file is silent they have the defaults of the model's class.
struct ModelConfig {
  std::string name;        ///< of a built-in model; otherwise the model type
  std::string model_type;  ///< "llama", "mistral", "gemma2", "gemma3_text", "qwen2", "qwen3"
  std::string dtype;       ///< "bfloat16", "float16", "float32"; empty where the file is silent

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;

  double norm_epsilon = 0;
  std::string activation;  ///< "silu", "gelu" or "gelu_tanh"
  bool qkv_bias = false;
  bool output_bias = false;  ///< of attention's output projection
  bool mlp_bias = false;
  bool qk_norm = false;
  bool norm_weight_plus_one = false;
  bool sandwich_norms = false;
  bool scaled_embedding = false;  ///< the embedding row is multiplied by √hidden
  bool tied_embedding = false;    ///< the output matrix is the embedding

  double rope_base = 0;
  bool rope_interleaved = false;  ///< RoPE turns neighbours (2i, 2i + 1), not (i, i + head_dim ÷ 2)
  double window_rope_base = 0;    ///< of layers with a window; 0: as the others
  ConfigRopeScaling rope_scaling = ConfigRopeScaling::none;
  double rope_factor = 1;
  double rope_low_frequency_factor = 1;
  double rope_high_frequency_factor = 4;
  std::int64_t rope_original_positions = 8192;

  std::int64_t window = 0;           ///< keys that a windowed layer sees; 0: none has a window
  std::vector<bool> has_window;      ///< by layer; as many as layers
  double query_pre_attn_scalar = 0;  ///< scores are divided by its square root; 0: by √head_dim
  double attention_soft_cap = 0;     ///< 0: none
  double final_soft_cap = 0;         ///< 0: none

  std::int64_t max_positions = 0;   ///< longest context that it was made for; 0: the file is silent
  std::vector<std::int64_t> eos;    ///< token ids that end a text
  std::optional<std::int64_t> bos;  ///< token id that begins one

  std::vector<std::string> unused;  ///< fields of the file that change no arithmetic here, in order
};

/// One model family that config.json may name.
struct ConfigFamily {
  std::string_view model_type;
  std::string_view models;  ///< what it is, for people
};

/// Every accepted `model_type`.
[[nodiscard]] std::span<const ConfigFamily> config_families();

/// Reads the text of a config.json. A configuration of several modalities is read through its
/// `text_config`. Errors (ErrorKind::file, one line, beginning with `source`) name the field: one
/// that is missing, a value with what is accepted, and fields that change arithmetic in a way that
/// is not supported (quantization_config, num_local_experts, a RoPE scaling of another kind, …).
[[nodiscard]] Result<ModelConfig> parse_config(std::string_view text, std::string_view source);

/// Reads a config.json of at most 1 MiB. Errors as parse_config, and those of opening a file.
[[nodiscard]] Result<ModelConfig> load_config(const std::string& path);

/// A model whose configuration is built in.
struct BuiltInModel {
  std::string_view name;    ///< "llama-2-7b"
  std::string_view config;  ///< its config.json, without the fields that change no arithmetic
  std::string_view source;  ///< whose config.json, and when it was read
  softfloat::Evidence evidence = softfloat::Evidence::documented;
};

/// Every built-in model, in the order in which they are listed to the user.
[[nodiscard]] std::span<const BuiltInModel> built_in_models();

/// The configuration of a built-in model. An error (usage) names the text, the accepted names and
/// the near one.
[[nodiscard]] Result<ModelConfig> built_in_config(std::string_view name);

}  // namespace kvsim
