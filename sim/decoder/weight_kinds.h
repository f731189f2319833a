// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "sim/decoder/layer_weights.h"
#include "sim/decoder/weights_view.h"

namespace kvsim::decoder {

/// The weight of that kind in a layer.
[[nodiscard]] const WeightView& weight_of(const DecoderLayerWeights& layer, WeightKind kind);

/// What an operator with that weight is called: "attention-norm", "query", "down".
[[nodiscard]] std::string_view name_of(WeightKind kind);

}  // namespace kvsim::decoder
