// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/decoder/layer_weights.h"
#include "sim/decoder/row_operators.h"
#include "sim/decoder_shape.h"
#include "softfloat/result.h"

namespace kvsim::decoder {

/// What a layer asks for, operator by operator. Weights and biases are named by their kind.
class LayerSteps {
 public:
  virtual ~LayerSteps() = default;

  virtual Result<bool> norm(WeightKind weight, Buffer in, Buffer out, std::int64_t width) = 0;
  /// A projection from every element of a row of `in` to every one of `out`.
  virtual Result<bool> linear(WeightKind weights, Buffer in, Buffer out, bool has_bias) = 0;
  /// Query, key and value are projected, and nothing else has been done to them.
  virtual void projected() {}
  virtual Result<bool> rotate() = 0;
  /// Stores key and value, and attends.
  virtual Result<bool> attend() = 0;
  virtual Result<bool> multiply_gate() = 0;
  virtual Result<bool> add_branch() = 0;
};

/// One layer of a decoder: the same operators in the same order for everything that computes one.
Result<bool> walk_layer(const DecoderShape& shape, LayerSteps& steps);

/// The bias that belongs to a projection.
[[nodiscard]] constexpr WeightKind bias_of(WeightKind weights) {
  return static_cast<WeightKind>(static_cast<int>(weights) +
                                 static_cast<int>(WeightKind::query_bias));
}

}  // namespace kvsim::decoder
