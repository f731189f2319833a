// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/weight_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvsim {

static_assert(std::endian::native == std::endian::little, "elements are copied as they stand");

namespace {

template <class Code, class Convert>
void convert_all(std::span<const std::byte> codes, std::span<float> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Code code = 0;
    std::memcpy(&code, codes.data() + i * sizeof(Code), sizeof(Code));
    out[i] = convert(code);
  }
}

}  // namespace

std::size_t convert_weights(Dtype dtype, std::span<const std::byte> codes, std::span<float> out) {
  if (dtype == Dtype::bf16) {
    convert_all<std::uint16_t>(codes, out, bfloat16_to_float);
  } else if (dtype == Dtype::f16) {
    convert_all<std::uint16_t>(codes, out, binary16_to_float);
  } else {
    std::memcpy(out.data(), codes.data(), out.size() * sizeof(float));
  }
  // First without a branch in the loop: weights are nearly always finite.
  constexpr std::uint32_t exponent = 0x7F800000U;
  std::uint32_t found = 0;
  for (const float value : out) {
    found |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & exponent) == exponent);
  }
  if (found == 0) return out.size();
  const auto bad = std::ranges::find_if(out, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(bad - out.begin());
}

}  // namespace kvsim
