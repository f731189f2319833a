// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "softfloat/format.h"
#include "softfloat/result.h"
#include "softfloat/rounding.h"

/// Numbers as text. Independent of the locale and of the C library's own conversions.
namespace kvsim::softfloat {

/// The longest accepted number, in characters. Work and memory are bounded by it.
inline constexpr std::size_t longest_number = 16384;

/// Reads a number and rounds it once into `format`. Accepted, in any mix of upper and lower case:
///   - bits: "0x3c00", hexadecimal without '.', 'p' and sign; the value must fit format.width()
///   bits
///     and is taken as it is, without flags (a signaling NaN stays one);
///   - a hex-float: "0x1.8p+3", "-0x1p-24"; it has a '.' or a 'p' (the exponent of two, in
///   decimal);
///   - a decimal: "-1.5e-3", "+1", ".5", "5.";
///   - "inf", "infinity", "nan", with an optional sign, which a NaN does not keep.
/// No blanks and no separators. The result is correctly rounded for every length, exponent and
/// rounding direction; flags and special values are those of a conversion into `format`: a number
/// in a format that cannot hold it (infinity in e4m3, a negative one in e8m0) follows the Mode.
/// Errors (usage): empty text, another form, bits wider than the format, or more than
/// `longest_number` characters.
[[nodiscard]] Result<Rounded> parse_number(const Format& format, std::string_view text,
                                           const Mode& mode = {});

/// The code in hexadecimal, padded to the format's width: "0x3c00", "0x1" (e2m1), "0x00000" (tf32).
[[nodiscard]] std::string to_bits_text(const Format& format, Bits bits);

/// The value exactly, as C's "%a" writes a double: "0x1.8p+3", "-0x0p+0", "inf", "-inf", "nan".
/// Subnormal numbers are normalized too: "0x1p-24".
[[nodiscard]] std::string to_hex_float(const Format& format, Bits bits);

/// The shortest decimal that reads back to the same code of this format with ties to even and
/// without overflow; the closest to the value among the shortest. Plain or scientific notation,
/// whichever is shorter, plain if equal: "0.1", "65504", "1e-07", "-0", "inf", "nan". In plain
/// notation an integer is written exactly: 448 of e4m3 is "448", although 450 would read back.
/// binary32 and binary64 print as std::to_chars prints float and double.
[[nodiscard]] std::string to_decimal(const Format& format, Bits bits);

/// Every digit of the value, at most 767 significant ones for binary64; notation as to_decimal:
/// "0.0999755859375".
[[nodiscard]] std::string to_exact_decimal(const Format& format, Bits bits);

}  // namespace kvsim::softfloat
