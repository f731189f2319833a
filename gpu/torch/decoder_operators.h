// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "gpu/torch/decoder.h"
#include "model/config.h"

/// The operators of transformers' decoders as it calls them (transformers 5.24,
/// models/*/modeling_*, integrations/sdpa_attention, masking_utils, modeling_rope_utils; read
/// 2026-11).
namespace kvsim::gpu::aten {

/// What the operators of one model and arm share.
struct OperatorContext {
  const ModelConfig& config;
  at::ScalarType storage;
  at::Device device;
  AttentionFunction attention = AttentionFunction::eager;

  /// The format that transformers computes norms, softmax and RoPE in: float32, and float64 in
  /// float64 (transformers itself stays in float32 there).
  [[nodiscard]] at::ScalarType wide() const {
    return storage == at::kDouble ? at::kDouble : at::kFloat;
  }
};

/// The rows that a pass adds, and the rows before them that a layer sees.
struct PassSpan {
  std::int64_t first = 0;  ///< of the sequence
  std::int64_t rows = 0;
};

/// A norm over the last dimension.
[[nodiscard]] at::Tensor rms_norm(const OperatorContext& context, const at::Tensor& x,
                                  const at::Tensor& weight);

/// cos and sin, [1][rows][head_dim], in the storage format.
struct RopeFactors {
  at::Tensor cosine;
  at::Tensor sine;
};
/// Frequencies of a kind of layer, [head_dim ÷ 2].
[[nodiscard]] at::Tensor rope_frequencies(const OperatorContext& context, bool windowed);
[[nodiscard]] RopeFactors rope_factors(const OperatorContext& context,
                                       const at::Tensor& frequencies, PassSpan rows);
/// x [1][heads][rows][head_dim], rotated.
[[nodiscard]] at::Tensor rotate(const OperatorContext& context, const at::Tensor& x,
                                const RopeFactors& factors);

/// The mask of a kind of layer that attention takes, [1][1][rows][keys]; none where it needs none.
/// `window` 0: none. Keys are those that attend() gets.
[[nodiscard]] std::optional<at::Tensor> attention_mask(const OperatorContext& context,
                                                       PassSpan rows, std::int64_t window);
/// How many rows before the pass a layer keeps in its cache.
[[nodiscard]] std::int64_t kept_rows(PassSpan rows, std::int64_t window);

/// query [1][heads][rows][head_dim], key and value [1][kv_heads][keys][head_dim]; the result is
/// [1][rows][heads][head_dim].
[[nodiscard]] at::Tensor attend(const OperatorContext& context, const at::Tensor& query,
                                const at::Tensor& key, const at::Tensor& value,
                                const std::optional<at::Tensor>& mask);

/// cap · tanh(x ÷ cap); x itself where the cap is 0.
[[nodiscard]] at::Tensor soft_cap(const at::Tensor& x, double cap);
/// The function of the gated MLP.
[[nodiscard]] at::Tensor activation(const OperatorContext& context, const at::Tensor& x);

}  // namespace kvsim::gpu::aten
