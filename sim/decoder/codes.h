// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "softfloat/format.h"
#include "softfloat/formats.h"

/// The codes of bfloat16 and binary16, one number at a time.
namespace kvsim::decoder {

/// The number of a bfloat16 or binary16 code; exact.
[[nodiscard]] inline float code_to_float(const softfloat::Format& format, std::uint16_t code) {
  if (format == softfloat::bfloat16) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
  }
  const auto sign = static_cast<std::uint32_t>(code & 0x8000U) << 16;
  const auto magnitude = static_cast<std::uint32_t>(code & 0x7fffU) << 13;
  if (magnitude >= 0x0f800000U) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x007fffffU));
  }
  // The exponent's bias differs by 112; times 2^112 also makes subnormal numbers normal.
  const float value = std::bit_cast<float>(magnitude) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// The code of a number that bfloat16 or binary16 has; a NaN becomes the quiet one.
[[nodiscard]] inline std::uint16_t float_to_code(const softfloat::Format& format, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (format == softfloat::bfloat16) {
    return static_cast<std::uint16_t>(std::isnan(x) ? 0x7fc0U : bits >> 16);
  }
  if (std::isnan(x)) return 0x7e00U;
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | 0x7c00U);
  const float scaled = std::fabs(x) * 0x1p-112F;  // exact: binary16's smallest becomes 2^-136
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) >> 13));
}

}  // namespace kvsim::decoder
