// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/dtype.h"

namespace kvsim {

/// The number that a bfloat16 code stands for; exact.
[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

/// The number that a binary16 code stands for; exact. NaN stays NaN.
[[nodiscard]] constexpr float binary16_to_float(std::uint16_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(code & 0x7FFFU) << 13;
  const std::uint32_t exponent = code & 0x7C00U;
  if (exponent == 0) {
    // Subnormal: 2^-14 (1 + t) - 2^-14 for the trailing bits t, which is exact.
    const float value = std::bit_cast<float>(magnitude + 0x38800000U) - 0x1p-14F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t rebias = exponent == 0x7C00U ? 255U - 31U : 127U - 15U;
  return std::bit_cast<float>((magnitude + (rebias << 23)) | sign);
}

/// Whether weights may have that element type: BF16, F16 and F32.
[[nodiscard]] constexpr bool is_weight_dtype(Dtype dtype) {
  return dtype == Dtype::bf16 || dtype == Dtype::f16 || dtype == Dtype::f32;
}

/// The numbers of `codes`, little-endian elements of `dtype`, of any alignment; exact. dtype must
/// be BF16, F16 or F32, and `out` must have as many elements. Returns the index of the first one
/// that is NaN or infinite, or out.size().
[[nodiscard]] std::size_t convert_weights(Dtype dtype, std::span<const std::byte> codes,
                                          std::span<float> out);

}  // namespace kvsim
