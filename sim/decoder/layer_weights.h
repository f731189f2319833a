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

namespace kvsim::decoder {

/// What of a layer is drawn at random. The numbers are part of every recorded result: append, never
/// renumber.
enum class WeightKind : std::uint8_t {
  query = 0,
  key = 1,
  value = 2,
  output = 3,
  gate = 4,
  up = 5,
  down = 6,
  attention_norm = 16,
  mlp_norm = 17,
  attention_post_norm = 18,
  mlp_post_norm = 19,
  query_norm = 20,
  key_norm = 21,
  query_bias = 32,
  key_bias = 33,
  value_bias = 34,
  output_bias = 35,
  gate_bias = 36,
  up_bias = 37,
  down_bias = 38,
  first_hidden = 64,  ///< not of a layer
  common = 65,        ///< added behind both branches, the same to every row
};

/// The seeded numbers of a decoder, one tensor at a time.
class LayerWeights {
 public:
  LayerWeights(std::uint64_t seed, const softfloat::Format& storage, const EngineOptions& engine)
      : seed_(seed), storage_(storage), engine_(engine) {}

  /// A matrix [terms][outputs] with deviation factor ÷ √terms, in a buffer that the next call of
  /// matrix() overwrites.
  Result<const float*> matrix(std::int64_t layer, WeightKind kind, std::int64_t terms,
                              std::int64_t outputs, double factor = 1);
  /// `count` numbers center + deviation · n, rounded to binary32 and then to storage.
  Result<std::vector<float>> vector(std::int64_t layer, WeightKind kind, std::int64_t count,
                                    float center, float deviation) const;

 private:
  std::uint64_t seed_;
  softfloat::Format storage_;
  EngineOptions engine_;
  std::vector<float> matrix_;
};

}  // namespace kvsim::decoder
