// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/decoder_shape.h"
#include "sim/engine/columns.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// The weights of a decoder where they stand, for example in a mapped file.
namespace kvsim {

/// One weight: row-major, little-endian, of any alignment; not owned. A matrix is [outputs][terms],
/// as Hugging Face stores it; a vector has one row.
struct WeightView {
  const void* data = nullptr;  ///< null: the model has no such weight
  softfloat::Format format;    ///< bfloat16, binary16 or binary32
  std::int64_t rows = 1;
  std::int64_t columns = 0;

  [[nodiscard]] bool present() const { return data != nullptr; }
};

/// The weights of one layer. Which must be present follows from DecoderShape.
struct DecoderLayerWeights {
  WeightView attention_norm;       ///< [hidden]
  WeightView query;                ///< [query_heads · head_dim][hidden]
  WeightView key;                  ///< [kv_heads · head_dim][hidden]
  WeightView value;                ///< [kv_heads · head_dim][hidden]
  WeightView output;               ///< [hidden][query_heads · head_dim]
  WeightView query_bias;           ///< qkv_bias
  WeightView key_bias;             ///< qkv_bias
  WeightView value_bias;           ///< qkv_bias
  WeightView output_bias;          ///< output_bias
  WeightView query_norm;           ///< [head_dim], qk_norm
  WeightView key_norm;             ///< [head_dim], qk_norm
  WeightView attention_post_norm;  ///< [hidden], sandwich_norms
  WeightView mlp_norm;             ///< [hidden]
  WeightView gate;                 ///< [ffn][hidden]
  WeightView up;                   ///< [ffn][hidden]
  WeightView down;                 ///< [hidden][ffn]
  WeightView gate_bias;            ///< mlp_bias
  WeightView up_bias;              ///< mlp_bias
  WeightView down_bias;            ///< mlp_bias
  WeightView mlp_post_norm;        ///< [hidden], sandwich_norms
};

/// All weights of a decoder.
struct DecoderWeights {
  WeightView embedding;   ///< [vocabulary][hidden]
  WeightView output;      ///< [vocabulary][hidden]; absent: the embedding serves (tied)
  WeightView final_norm;  ///< [hidden]
  std::vector<DecoderLayerWeights> layers;
};

/// Holds true, or an error (usage) that names the weight, its size and the size that the shape
/// asks for, or a format that weights cannot have.
[[nodiscard]] Result<bool> check_weights(const DecoderShape& shape, const DecoderWeights& weights);

/// Rows first, first + 1, … of a weight as numbers, exact; `out` holds whole rows.
void read_weight_rows(const WeightView& view, std::int64_t first, std::span<float> out);

/// All numbers of the weight, rounded once to `format`.
void read_weight(const WeightView& view, const softfloat::Format& format, std::span<float> out,
                 const EngineOptions& options);

/// Whether the engine can read the numbers where they stand (sim/engine/numbers.h).
[[nodiscard]] bool is_aligned(const WeightView& view);

}  // namespace kvsim
