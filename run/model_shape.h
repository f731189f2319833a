// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "model/config.h"
#include "sim/decoder_shape.h"
#include "softfloat/result.h"

namespace kvsim {

/// The shape that a configuration describes. Errors as check_shape().
[[nodiscard]] Result<DecoderShape> decoder_shape(const ModelConfig& config);

}  // namespace kvsim
