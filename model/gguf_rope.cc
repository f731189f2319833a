// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_rope.h"

#include <cmath>
#include <numbers>

namespace kvsim {
namespace {

/// What the frequency of that wavelength is divided by.
double divisor(const Llama3RopeScaling& scaling, double wavelength) {
  const double turns = scaling.original_positions / wavelength;  // over the original positions
  if (turns < scaling.low_frequency_factor) return scaling.factor;
  if (turns > scaling.high_frequency_factor) return 1;
  const double smooth = (turns - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return 1 / ((1 - smooth) / scaling.factor + smooth);
}

}  // namespace

std::optional<Llama3RopeScaling> llama3_rope_scaling(std::span<const float> factors, double base,
                                                     std::int64_t head_dim) {
  constexpr double close = 1e-4;
  const bool is_power = head_dim > 1 && (head_dim & (head_dim - 1)) == 0;
  if (!is_power || std::ssize(factors) != head_dim / 2 || !(base > 1)) return std::nullopt;
  Llama3RopeScaling scaling;
  scaling.factor = factors.back();  // the lowest frequency is always scaled
  if (!(scaling.factor > 1) || !std::isfinite(scaling.factor)) return std::nullopt;
  // base^(2 ÷ head_dim) by square roots, which are the same everywhere.
  double ratio = base;
  for (std::int64_t i = head_dim / 2; i > 1; i /= 2) ratio = std::sqrt(ratio);
  double wavelength = 2 * std::numbers::pi;
  for (const float factor : factors) {
    const double wanted = divisor(scaling, wavelength);
    if (!(std::fabs(static_cast<double>(factor) - wanted) <= close * wanted)) return std::nullopt;
    wavelength *= ratio;
  }
  return scaling;
}

}  // namespace kvsim
