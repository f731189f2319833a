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
  double norm_epsilon;
  double rope_base;
  std::int64_t head_dim;  ///< 0: hidden ÷ heads
  std::string_view activation;
  bool always_qkv_bias;  ///< Qwen2: no field says so
  bool qk_norm;
  bool gemma;              ///< 1 + weight, sandwich norms, scaled embedding, tied embedding
  std::int64_t window;     ///< default of sliding_window; 0: none
  std::int64_t pattern;    ///< every pattern-th layer sees everything; 0: no layer differs
  bool window_needs_flag;  ///< Qwen: a window only where use_sliding_window is true
  double query_scalar;     ///< default of query_pre_attn_scalar; 0: no such field
  double attention_cap;
  double final_cap;
};

// Source: the configuration classes of transformers (src/transformers/models/*/configuration_*.py,
// 2026-08).
inline constexpr auto config_rules = std::to_array<FamilyRules>({
    {{"llama", "Llama 1 to 3, SmolLM2"},
     1e-6,
     10000,
     0,
     "silu",
     false,
     false,
     false,
     0,
     0,
     false,
     0,
     0,
     0},
    {{"mistral", "Mistral 7B"},
     1e-6,
     10000,
     0,
     "silu",
     false,
     false,
     false,
     4096,
     0,
     false,
     0,
     0,
     0},
    {{"gemma2", "Gemma 2"},
     1e-6,
     10000,
     256,
     "gelu_pytorch_tanh",
     false,
     false,
     true,
     4096,
     2,
     false,
     256,
     50,
     30},
    {{"gemma3_text", "Gemma 3"},
     1e-6,
     1000000,
     256,
     "gelu_pytorch_tanh",
     false,
     true,
     true,
     4096,
     6,
     false,
     256,
     0,
     0},
    {{"qwen2", "Qwen 2 and 2.5"},
     1e-6,
     10000,
     0,
     "silu",
     true,
     false,
     false,
     4096,
     0,
     true,
     0,
     0,
     0},
    {{"qwen3", "Qwen 3"}, 1e-6, 10000, 128, "silu", false, true, false, 4096, 0, true, 0, 0, 0},
});

}  // namespace kvsim
