// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/engine/numbers.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"

/// The codes of bfloat16 and binary16, one number at a time.
namespace kvsim::decoder {

/// The number of a bfloat16 or binary16 code; exact.
[[nodiscard]] inline float code_to_float(const softfloat::Format& format, std::uint16_t code) {
  return format == softfloat::bfloat16 ? bfloat16_number(code) : binary16_number(code);
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
