// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "model/config.h"
#include "run/score_rule.h"
#include "sim/decoder_shape.h"
#include "softfloat/result.h"

namespace kvsim {

/// The shape that a configuration describes. Errors as check_shape().
[[nodiscard]] Result<DecoderShape> decoder_shape(const ModelConfig& config);

/// How a layer of the shape makes its scores.
[[nodiscard]] ScoreRule score_rule(const DecoderShape& shape, std::int64_t layer);

}  // namespace kvsim
