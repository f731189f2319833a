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

/// The weight of the kind with that name; nullptr if there is none.
[[nodiscard]] const WeightView* find_weight(const DecoderLayerWeights& layer,
                                            std::string_view name);

}  // namespace kvsim::decoder
