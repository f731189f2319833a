// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/rope_frequencies.h"

#include "sim/elementary.h"

namespace kvsim::decoder {
namespace {

/// Source: transformers, modeling_rope_utils.py, the llama3 rule (2024-07).
float scale_llama3(const RopeScaling& scaling, float frequency) {
  constexpr float two_pi = 6.28318530717958647692F;
  const auto low = static_cast<float>(scaling.low_frequency_factor);
  const auto high = static_cast<float>(scaling.high_frequency_factor);
  const auto original = static_cast<float>(scaling.original_positions);
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = two_pi / frequency;
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const float smooth = (original / wavelength - low) / (high - low);
  const float slow = (1 - smooth) * frequency / factor;
  return slow + smooth * frequency;
}

}  // namespace

LayerPosition layer_position(const DecoderShape& shape, std::int64_t layer) {
  LayerPosition position;
  const bool windowed = shape.windowed(layer);
  position.window = windowed ? shape.window : 0;
  position.rope_base = shape.rope_base;
  if (windowed && shape.window_rope_base > 0) {
    position.rope_base = shape.window_rope_base;
    return position;
  }
  const RopeScaling& scaling = shape.rope_scaling;
  if (scaling.kind == RopeScalingKind::none) return position;
  const auto base = static_cast<float>(shape.rope_base);
  const auto dimension = static_cast<float>(shape.head_dim);
  for (std::int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const float frequency = 1 / pow_f32(base, static_cast<float>(2 * i) / dimension);
    position.custom_frequencies.push_back(scaling.kind == RopeScalingKind::linear
                                              ? frequency / static_cast<float>(scaling.factor)
                                              : scale_llama3(scaling, frequency));
  }
  return position;
}

}  // namespace kvsim::decoder
