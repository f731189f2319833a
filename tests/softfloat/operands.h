// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Operands for formats too wide to exhaust: exponent patterns × significand patterns, after
/// Berkeley TestFloat (J. R. Hauser), and random words weighted toward them.

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/softfloat/sweep.h"

namespace kvsim::oracle {

/// Exponent fields where behaviour changes: both ends, around 1, and a precision away from 1.
inline std::vector<Bits> exponent_patterns(const Format& f) {
  const int top = (1 << f.exponent_bits) - 1;
  const int p = f.precision, bias = f.bias;
  std::vector<Bits> fields;
  for (const int field : {0, 1, 2, p, bias - p - 1, bias - p, bias - 2, bias - 1, bias, bias + 1,
                          bias + 2, bias + p - 1, bias + p, bias + p + 1, top - 2, top - 1, top}) {
    if (field >= 0 && field <= top) fields.push_back(static_cast<Bits>(field));
  }
  return fields;
}

/// Trailing significands. Level 1: none, the lowest bit, all, all but the lowest. Level 2: every
/// single bit, and every run of ones that starts at either end, with their complements.
inline std::vector<Bits> significand_patterns(const Format& f, int level) {
  const int width = f.precision - 1;
  const Bits all = (Bits{1} << width) - 1;
  if (level == 1) return {0, 1, all, all - 1};
  std::vector<Bits> patterns;
  for (int i = 0; i < width; ++i) {
    const Bits one = Bits{1} << i;
    for (const Bits pattern : {one, one - 1}) {
      patterns.push_back(pattern);
      patterns.push_back(all - pattern);
    }
  }
  return patterns;
}

/// Every sign × exponent pattern × significand pattern.
inline std::vector<Bits> operand_patterns(const Format& f, int level) {
  std::vector<Bits> operands;
  for (const Bits sign : {Bits{0}, Bits{1}}) {
    for (const Bits field : exponent_patterns(f)) {
      for (const Bits significand : significand_patterns(f, level)) {
        operands.push_back((((sign << f.exponent_bits) | field) << (f.precision - 1)) |
                           significand);
      }
    }
  }
  return operands;
}

/// Random operands of one format, each addressed by a counter.
class RandomOperands {
 public:
  explicit RandomOperands(const Format& format)
      : format_(format),
        fields_(exponent_patterns(format)),
        significands_(significand_patterns(format, 2)) {}

  /// One operand: any code, or a pattern in the exponent, the significand or both, or an exponent
  /// within p + 2 of that of 1.
  [[nodiscard]] Bits operator()(std::uint64_t counter) const {
    const std::uint64_t choice = mix(counter), word = mix(choice);
    const int trailing = format_.precision - 1;
    const Bits mask = (Bits{2} << (trailing + format_.exponent_bits)) - 1;
    Bits code = word & mask;
    if (choice % 8 == 0) return code;
    const Bits low = (Bits{1} << trailing) - 1;
    const Bits significand =
        (choice >> 8) % 2 == 0 ? code & low : significands_[(choice >> 16) % significands_.size()];
    Bits field = fields_[(choice >> 32) % fields_.size()];
    if (choice % 8 < 4) {
      const auto reach = static_cast<std::uint64_t>(format_.precision + 2);
      const auto near = static_cast<std::uint64_t>(format_.bias) + (choice >> 40) % (2 * reach);
      const auto top = (std::uint64_t{1} << format_.exponent_bits) - 1;
      field = near < reach ? 0 : std::min(near - reach, top);
    }
    return ((word >> 63) << (trailing + format_.exponent_bits)) | (field << trailing) | significand;
  }

  /// An addend that nearly cancels the product of two codes, for formats within binary64; any
  /// operand where their product is not a normal number of the format.
  [[nodiscard]] Bits near_cancellation(Bits a, Bits b, std::uint64_t counter) const {
    const double product = -value(a) * value(b);
    const auto bits = std::bit_cast<std::uint64_t>(product);
    const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
    const int field = exponent + format_.bias, top = (1 << format_.exponent_bits) - 1;
    if (exponent == -1023 || field < 1 || field >= top) return (*this)(counter);
    const int trailing = format_.precision - 1;
    const Bits fraction = (bits & ((Bits{1} << 52) - 1)) >> (52 - trailing);
    const Bits code =
        (((static_cast<Bits>(bits >> 63) << format_.exponent_bits) | static_cast<Bits>(field))
         << trailing) |
        fraction;
    return code ^ (mix(counter) % 4);
  }

 private:
  [[nodiscard]] double value(Bits code) const {
    const Operand o = decode(format_, code);
    const double magnitude = std::ldexp(static_cast<double>(o.significand), o.exponent);
    return o.kind != Kind::finite ? 0 : o.negative ? -magnitude : magnitude;
  }

  Format format_;
  std::vector<Bits> fields_, significands_;
};

}  // namespace kvsim::oracle
