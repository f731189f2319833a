// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/random.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/normal_quantile.h"

namespace kvsim::fuzz {
namespace {

constexpr int index_bits = 12;
constexpr std::size_t intervals = std::size_t{1} << index_bits;
using Quantiles = std::array<float, intervals + 1>;

Quantiles make_quantiles() {
  Quantiles quantiles{};
  for (std::size_t i = 0; i <= intervals; ++i) {
    // The infinite ends are replaced by what lies within a quarter of an interval.
    const double position = std::clamp(static_cast<double>(i), 0.25, intervals - 0.25);
    quantiles[i] = static_cast<float>(normal_quantile(position / intervals));
  }
  return quantiles;
}

}  // namespace

void Random::gaussians(std::span<float> out) {
  static const Quantiles quantiles = make_quantiles();
  constexpr int fraction_bits = 32 - index_bits;
  PhiloxBlock words{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % words.size() == 0) {
      words = philox_block(address_.seed, address_.stream, address_.position++);
    }
    const std::uint32_t word = words[i % words.size()];
    const std::size_t interval = word >> fraction_bits;
    const auto rest = static_cast<float>(word & ((1U << fraction_bits) - 1)) * 0x1p-20F;
    out[i] = quantiles[interval] + rest * (quantiles[interval + 1] - quantiles[interval]);
  }
}

}  // namespace kvsim::fuzz
