// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/decoder/decoder_arm.h"
#include "sim/decoder_shape.h"

namespace kvsim::decoder {

/// Query [tokens][query_heads · head_dim], key and value [tokens][kv_heads · head_dim].
struct WideTensors {
  std::span<const double> query;
  std::span<const double> key;
  std::span<const double> value;
};

/// Causal attention in binary64, out [tokens][query_heads · head_dim]. Each token is computed by
/// itself: how tokens are grouped makes no difference.
void attend_binary64(const DecoderShape& shape, const LayerPosition& layer, std::int64_t tokens,
                     const WideTensors& tensors, std::span<double> out, int threads);

}  // namespace kvsim::decoder
