// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/property/property.h"
#include "fuzz/property/small_model.h"
#include "sim/decoder/incremental.h"

/// Random decoders that several properties share.
namespace kvsim::fuzz {

/// A random model under one dispatch.
struct Arm {
  SmallModel model;
  DecoderArmOptions options;

  [[nodiscard]] Result<IncrementalDecoder> decoder() const {
    return IncrementalDecoder::make(model.shape(), model.weights(), options);
  }
  [[nodiscard]] std::string text() const;
};

/// A model with any features, under one of these dispatches and the input's plant.
[[nodiscard]] Result<Arm> draw_arm(PropertyInput& input,
                                   std::span<const std::string_view> dispatches);

/// Tokens of a vocabulary of that size.
[[nodiscard]] std::vector<std::int32_t> draw_tokens(Random& random, std::int64_t count,
                                                    std::int64_t vocabulary);

}  // namespace kvsim::fuzz
