// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/decoder/row_operators.h"
#include "sim/decoder_shape.h"

namespace kvsim::decoder {

/// RoPE and window of layer i. A scaled RoPE has its frequencies computed as transformers does, in
/// binary32, and once more in binary64; windowed layers with a base of their own are not scaled.
[[nodiscard]] LayerPosition layer_position(const DecoderShape& shape, std::int64_t layer);

}  // namespace kvsim::decoder
