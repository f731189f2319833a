// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "softfloat/format.h"
#include "softfloat/formats.h"

/// Operands of products as they lie in memory. Checkpoints and K/V caches hold 16-bit codes, which
/// the engine reads as they are: half the bytes of floats.
namespace kvsim {

/// How a number is stored.
enum class NumberCode : std::uint8_t {
  binary32,  ///< a float, whatever the format of the number
  bfloat16,  ///< a 16-bit code
  binary16,  ///< a 16-bit code
};

/// The number behind a bfloat16 code.
[[nodiscard]] constexpr float bfloat16_number(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16U);
}

/// The number behind a binary16 code; a NaN stays one.
[[nodiscard]] constexpr float binary16_number(std::uint16_t code) {
  constexpr float scale = 0x1p112F;  // from the bias of binary16 to that of binary32
  const std::uint32_t magnitude = code & 0x7fffU;
  const float scaled = std::bit_cast<float>(magnitude << 13U) * scale;
  const std::uint32_t special = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// Points at numbers in memory that are floats or codes; `p + n` and `p[n]` count numbers. A float
/// pointer is one without further ado.
class NumberPointer {
 public:
  constexpr NumberPointer() = default;
  constexpr NumberPointer(const float* floats) : data_(floats) {}
  constexpr NumberPointer(std::nullptr_t) {}
  constexpr NumberPointer(NumberCode code, const void* data) : data_(data), code_(code) {}

  /// Numbers stored as codes of a format of 16 bits, or as binary32; nothing for other formats.
  [[nodiscard]] static constexpr std::optional<NumberPointer> of(const softfloat::Format& format,
                                                                 const void* data) {
    if (format == softfloat::binary32) return NumberPointer(NumberCode::binary32, data);
    if (format == softfloat::bfloat16) return NumberPointer(NumberCode::bfloat16, data);
    if (format == softfloat::binary16) return NumberPointer(NumberCode::binary16, data);
    return std::nullopt;
  }

  [[nodiscard]] constexpr NumberCode code() const { return code_; }
  [[nodiscard]] constexpr bool is_null() const { return data_ == nullptr; }
  [[nodiscard]] constexpr std::int64_t bytes() const {
    return code_ == NumberCode::binary32 ? 4 : 2;
  }
  [[nodiscard]] const void* data() const { return data_; }
  /// As floats; null where they are codes.
  [[nodiscard]] const float* floats() const {
    return code_ == NumberCode::binary32 ? static_cast<const float*>(data_) : nullptr;
  }
  /// As codes; null where they are floats.
  [[nodiscard]] const std::uint16_t* codes() const {
    return code_ == NumberCode::binary32 ? nullptr : static_cast<const std::uint16_t*>(data_);
  }

  [[nodiscard]] float operator[](std::int64_t i) const {
    switch (code_) {
      case NumberCode::binary32:
        break;
      case NumberCode::bfloat16:
        return bfloat16_number(codes()[i]);
      case NumberCode::binary16:
        return binary16_number(codes()[i]);
    }
    return floats()[i];
  }
  [[nodiscard]] friend NumberPointer operator+(NumberPointer p, std::int64_t n) {
    return {p.code_, static_cast<const std::byte*>(p.data_) + n * p.bytes()};
  }

 private:
  const void* data_ = nullptr;
  NumberCode code_ = NumberCode::binary32;
};

}  // namespace kvsim
