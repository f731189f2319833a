// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/config.h"

namespace kvsim {

/// What a family's class fixes or defaults to where the file is silent.
struct FamilyRules {
  ConfigFamily family;
  double norm_epsilon = 1e-6;
  double rope_base = 10000;
  std::int64_t head_dim = 0;  ///< 0: hidden ÷ heads
  std::string_view activation = "silu";
  bool attention_bias = false;   ///< reads attention_bias, of all four projections
  bool mlp_bias = false;         ///< reads mlp_bias
  bool always_qkv_bias = false;  ///< Qwen2: no field says so
  bool qk_norm = false;
  bool gemma = false;              ///< 1 + weight, sandwich norms, scaled embedding, tied embedding
  std::int64_t window = 0;         ///< default of sliding_window; 0: none
  std::int64_t pattern = 0;        ///< every pattern-th layer sees everything; 0: no layer differs
  bool window_needs_flag = false;  ///< Qwen: a window only where use_sliding_window is true
  double query_scalar = 0;         ///< default of query_pre_attn_scalar; 0: no such field
  double attention_cap = 0;
  double final_cap = 0;
};

// Source: the configuration classes of transformers (src/transformers/models/*/configuration_*.py,
// 2026-08); which biases a class has: modeling_*.py beside them, 5.24.0.
inline constexpr auto config_rules = std::to_array<FamilyRules>({
    {.family = {"llama", "Llama 1 to 3, SmolLM2"}, .attention_bias = true, .mlp_bias = true},
    {.family = {"mistral", "Mistral 7B"}, .window = 4096},
    {.family = {"gemma2", "Gemma 2"},
     .head_dim = 256,
     .activation = "gelu_pytorch_tanh",
     .attention_bias = true,
     .gemma = true,
     .window = 4096,
     .pattern = 2,
     .query_scalar = 256,
     .attention_cap = 50,
     .final_cap = 30},
    {.family = {"gemma3_text", "Gemma 3"},
     .rope_base = 1000000,
     .head_dim = 256,
     .activation = "gelu_pytorch_tanh",
     .attention_bias = true,
     .qk_norm = true,
     .gemma = true,
     .window = 4096,
     .pattern = 6,
     .query_scalar = 256},
    {.family = {"qwen2", "Qwen 2 and 2.5"},
     .always_qkv_bias = true,
     .window = 4096,
     .window_needs_flag = true},
    {.family = {"qwen3", "Qwen 3"},
     .head_dim = 128,
     .attention_bias = true,
     .qk_norm = true,
     .window = 4096,
     .window_needs_flag = true},
});

}  // namespace kvsim
