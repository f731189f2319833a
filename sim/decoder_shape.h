// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// The function between the two halves of a gated MLP.
enum class GateActivation : std::uint8_t {
  silu,       ///< x ÷ (1 + exp(−x))
  gelu,       ///< x · ½ (1 + erf(x ÷ √2))
  gelu_tanh,  ///< the same with tanh(√(2/π)(x + 0.044715 x³)) for erf
};

/// How RoPE frequencies differ from base^(−2i/head_dim).
enum class RopeScalingKind : std::uint8_t {
  none,
  linear,  ///< every frequency ÷ factor
  llama3,  ///< low frequencies ÷ factor, high ones kept, those between interpolated
};

/// Parameters of a RopeScalingKind. Source of llama3: Llama 3.1 model card and the function of that
/// name in transformers (modeling_rope_utils.py, 2024-07).
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  double low_frequency_factor = 1;         ///< llama3
  double high_frequency_factor = 4;        ///< llama3
  std::int64_t original_positions = 8192;  ///< llama3: the length that the model was trained on

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// The shape of a decoder-only transformer: what of its configuration changes arithmetic. The
/// default is a small decoder of the size that `predict` uses when nothing else is named.
struct DecoderShape {
  std::string name = "default";
  std::int64_t layers = 4;
  std::int64_t hidden = 2048;
  std::int64_t ffn = 8192;  ///< width of the gated MLP
  std::int64_t query_heads = 16;
  std::int64_t kv_heads = 4;  ///< a divisor of query_heads
  std::int64_t head_dim = 128;
  std::int64_t vocabulary = 32000;

  double norm_epsilon = 1e-5;
  bool norm_weight_plus_one = false;  ///< Gemma: the norm multiplies by 1 + weight
  bool sandwich_norms = false;        ///< Gemma-2/3: also norms after attention and after the MLP
  bool qk_norm = false;               ///< RMS norm of each query and key head before RoPE
  bool qkv_bias = false;              ///< q, k and v projections add a bias
  bool output_bias = false;           ///< so does the output projection of attention
  bool mlp_bias = false;              ///< so do the three projections of the MLP

  double rope_base = 10000;
  bool rope_interleaved = false;  ///< channels 2i and 2i + 1 form a pair; otherwise i and i + d/2
  RopeScaling rope_scaling;       ///< of the layers without a window
  double window_rope_base = 0;    ///< of the layers with a window, unscaled; 0: as the others

  std::int64_t window = 0;        ///< keys that a windowed layer sees; 0: no layer has a window
  std::vector<bool> has_window;   ///< by layer; empty: every layer has it
  double attention_scale = 0;     ///< factor of q·k; 0: 1 ÷ √head_dim
  double attention_soft_cap = 0;  ///< scores become cap · tanh(score ÷ cap); 0: none
  double final_soft_cap = 0;      ///< the same of the logits
  double embedding_scale = 1;     ///< factor of the embedding row (Gemma: √hidden)
  GateActivation activation = GateActivation::silu;

  friend bool operator==(const DecoderShape&, const DecoderShape&) = default;

  /// Whether layer i, 0 ≤ i < layers, sees only the last `window` keys.
  [[nodiscard]] bool windowed(std::int64_t i) const {
    return window > 0 && (has_window.empty() || has_window[static_cast<std::size_t>(i)]);
  }
  /// Numbers of one layer's seven weight matrices.
  [[nodiscard]] std::int64_t layer_weights() const {
    return hidden * head_dim * 2 * (query_heads + kv_heads) + 3 * hidden * ffn;
  }
};

/// "silu", "gelu" or "gelu_tanh".
[[nodiscard]] std::string_view to_string(GateActivation activation);

/// Holds true, or an error (usage) that names the first size or factor out of its range. Largest
/// sizes: 2^20 for hidden, ffn and vocabulary, 4096 layers, 1024 heads, head_dim 1024; head_dim is
/// even and kv_heads divides query_heads.
[[nodiscard]] Result<bool> check_shape(const DecoderShape& shape);

}  // namespace kvsim
