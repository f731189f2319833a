// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/rope_frequencies.h"

#include <algorithm>
#include <numbers>

#include "sim/elementary.h"
#include "sim/exp.h"
#include "sim/log.h"

namespace kvsim::decoder {
namespace {

/// Source: transformers, modeling_rope_utils.py, the llama3 rule (2024-07).
template <class Number>
Number scale_llama3(const RopeScaling& scaling, Number frequency) {
  constexpr Number two_pi = 2 * std::numbers::pi_v<Number>;
  const auto low = static_cast<Number>(scaling.low_frequency_factor);
  const auto high = static_cast<Number>(scaling.high_frequency_factor);
  const auto original = static_cast<Number>(scaling.original_positions);
  const auto factor = static_cast<Number>(scaling.factor);
  const Number wavelength = two_pi / frequency;
  if (wavelength < original / high) return frequency;
  if (wavelength > original / low) return frequency / factor;
  const Number smooth = (original / wavelength - low) / (high - low);
  const Number slow = (1 - smooth) * frequency / factor;
  return slow + smooth * frequency;
}

template <class Number>
Number scale(const RopeScaling& scaling, Number frequency) {
  switch (scaling.kind) {
    case RopeScalingKind::linear:
      return frequency / static_cast<Number>(scaling.factor);
    case RopeScalingKind::llama3:
      return scale_llama3(scaling, frequency);
    case RopeScalingKind::none:
      break;
  }
  return frequency;
}

}  // namespace

LayerPosition layer_position(const DecoderShape& shape, std::int64_t layer) {
  LayerPosition position;
  const bool windowed = shape.windowed(layer);
  position.window = windowed ? shape.window : 0;
  position.rope_base = shape.rope_base;
  RopeScaling scaling = shape.rope_scaling;
  if (windowed && shape.window_rope_base > 0) {
    position.rope_base = shape.window_rope_base;
    scaling = {};
  }
  const auto base = static_cast<float>(position.rope_base);
  const DoubleDouble log_base = log_reference(position.rope_base);
  for (std::int64_t i = 0; i < shape.head_dim / 2; ++i) {
    const DoubleDouble exponent =
        DoubleDouble(static_cast<double>(2 * i)) / static_cast<double>(shape.head_dim);
    position.exact_frequencies.push_back(
        scale(scaling, exp_reference(-(exponent * log_base)).high));
    if (scaling.kind == RopeScalingKind::none) continue;
    const float frequency =
        1 / pow_f32(base, static_cast<float>(2 * i) / static_cast<float>(shape.head_dim));
    position.custom_frequencies.push_back(scale(scaling, frequency));
  }
  return position;
}

}  // namespace kvsim::decoder
