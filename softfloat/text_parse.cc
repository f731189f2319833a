// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "softfloat/exact.h"
#include "softfloat/formats.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/text.h"
#include "softfloat/wide.h"

namespace kvsim::softfloat {
namespace {

using boost::multiprecision::cpp_int;

// Significant bits given to the rounding; the rest only says "something was there". More than the
// 53 + 34 that every rounding into binary64 may look at, and room for the sticky bit in 127.
constexpr int kept_bits = 120;
static_assert(kept_bits - 3 >= 53 + 34);  // 3: the first digit of a hex-float may be 1

// Exponents are clamped here: far beyond every format, far below the overflow of an int.
constexpr std::int64_t largest_exponent = 1'000'000'000;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_ignoring_case(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (lower(text[i]) != word[i]) return false;
  }
  return true;
}

// The value of a digit in base 10 or 16; -1 for any other character.
constexpr int digit_value(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0';
  const char l = lower(c);
  return base == 16 && l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

// The text for an error message: one short line whatever was typed.
std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, shown)) out += c >= ' ' && c <= '~' ? c : '?';
  out += text.size() > shown ? "...\"" : "\"";
  return out;
}

Error malformed(std::string_view text) {
  return {ErrorKind::usage, "number " + quoted(text) +
                                ": accepted are a decimal (-1.5e-3), a hex-float (0x1.8p+3), bits "
                                "in hexadecimal (0x3c00), inf and nan"};
}

// digits[.digits][exponent mark, sign, digits] taken apart: value = digits × base^-fraction_digits
// × (10 or 2)^exponent.
struct Parts {
  std::string digits;  ///< without leading zeros, without the point; empty for zero
  std::int64_t fraction_digits = 0;
  std::int64_t exponent = 0;
  bool has_point = false;
  bool has_exponent = false;
};

// Digits of an exponent; they may be many, so the value is clamped.
std::optional<std::int64_t> read_exponent(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    const int digit = digit_value(c, 10);
    if (digit < 0) return std::nullopt;
    if (value < largest_exponent) value = value * 10 + digit;
  }
  if (value > largest_exponent) value = largest_exponent;
  return negative ? -value : value;
}

std::optional<Parts> take_apart(std::string_view text, int base) {
  const char mark = base == 16 ? 'p' : 'e';
  Parts parts;
  bool any_digit = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !parts.has_point) {
      parts.has_point = true;
    } else if (const int digit = digit_value(c, base); digit >= 0) {
      any_digit = true;
      if (parts.has_point) ++parts.fraction_digits;
      if (digit != 0 || !parts.digits.empty()) parts.digits += c;
    } else if (lower(c) == mark && any_digit) {
      const auto exponent = read_exponent(text.substr(i + 1));
      if (!exponent) return std::nullopt;
      parts.has_exponent = true;
      parts.exponent = *exponent;
      return parts;
    } else {
      return std::nullopt;
    }
  }
  if (!any_digit) return std::nullopt;
  return parts;
}

// significand × 2^exponent with every bit of the significand counted.
Exact exact_from(bool negative, const cpp_int& significand, int exponent, bool sticky) {
  const int excess = static_cast<int>(msb(significand)) + 1 - kept_bits;
  if (excess <= 0) {
    return make_exact<uint128>(negative, significand.convert_to<uint128>(), exponent, sticky);
  }
  const cpp_int top = significand >> excess;
  sticky = sticky || static_cast<int>(lsb(significand)) < excess;
  return make_exact<uint128>(negative, top.convert_to<uint128>(), exponent + excess, sticky);
}

cpp_int from_decimal_digits(std::string_view digits) {
  cpp_int value = 0;
  while (!digits.empty()) {
    const std::string_view chunk = digits.substr(0, 18);
    std::uint64_t low = 0;
    std::uint64_t scale = 1;
    for (const char c : chunk) {
      low = low * 10 + static_cast<std::uint64_t>(c - '0');
      scale *= 10;
    }
    value = value * scale + low;
    digits.remove_prefix(chunk.size());
  }
  return value;
}

// floor(exponent × log10(2)) within one.
constexpr std::int64_t decimal_exponent(std::int64_t exponent) { return exponent * 30103 / 100000; }

Exact exact_from_decimal(const Format& format, bool negative, Parts parts) {
  if (parts.digits.empty()) return {Class::zero, negative, 0, 0};
  std::int64_t scale = parts.exponent - parts.fraction_digits;
  const std::size_t last = parts.digits.find_last_not_of('0');
  scale += static_cast<std::int64_t>(parts.digits.size() - 1 - last);
  parts.digits.resize(last + 1);

  // 10^leading ≤ value < 10^(leading + 1). Beyond these limits every rounding gives the same result
  // as a power of two that is far enough out: no huge power of ten is ever computed.
  const std::int64_t leading = scale + static_cast<std::int64_t>(parts.digits.size()) - 1;
  const int far_above = format.emax() + 64;
  const int far_below = format.emin() - 2 * format.precision - 256;
  if (leading > decimal_exponent(far_above) + 2) {
    return make_exact<uint128>(negative, uint128{1} << kept_bits, far_above - kept_bits, true);
  }
  if (leading < decimal_exponent(far_below) - 3) {
    return make_exact<uint128>(negative, uint128{1} << kept_bits, far_below - kept_bits, true);
  }

  const cpp_int digits = from_decimal_digits(parts.digits);
  if (scale >= 0) {
    return exact_from(negative, digits * pow(cpp_int(10), static_cast<unsigned>(scale)), 0, false);
  }
  // digits ÷ 10^n with a quotient of at least kept_bits bits; the remainder is the sticky bit.
  const cpp_int divisor = pow(cpp_int(10), static_cast<unsigned>(-scale));
  const int wanted = kept_bits + 1 + static_cast<int>(msb(divisor)) - static_cast<int>(msb(digits));
  const int shift = wanted > 0 ? wanted : 0;
  cpp_int quotient;
  cpp_int remainder;
  divide_qr(cpp_int(digits << shift), divisor, quotient, remainder);
  const bool rest = remainder != 0 && !mutant_is_on(Mutant::decimal_rest_lost);
  return exact_from(negative, quotient, -shift, rest);
}

Exact exact_from_hex(bool negative, const Parts& parts) {
  if (parts.digits.empty()) return {Class::zero, negative, 0, 0};
  uint128 significand = 0;
  bool sticky = false;
  std::int64_t exponent = parts.exponent - 4 * parts.fraction_digits;
  constexpr std::size_t kept_digits = kept_bits / 4;
  for (std::size_t i = 0; i < parts.digits.size(); ++i) {
    const auto digit = static_cast<unsigned>(digit_value(parts.digits[i], 16));
    if (i < kept_digits) {
      significand = significand << 4 | digit;
    } else {
      sticky = sticky || digit != 0;
      exponent += 4;
    }
  }
  return make_exact<uint128>(negative, significand, static_cast<int>(exponent), sticky);
}

Result<Rounded> parse_bits(const Format& format, std::string_view digits, std::string_view text) {
  Bits value = 0;
  for (const char c : digits) {
    const int digit = digit_value(c, 16);
    if (digit < 0) return malformed(text);
    if (value > (format.code_mask() >> 4) ||
        (value << 4 | static_cast<Bits>(digit)) > format.code_mask()) {
      return Error{ErrorKind::usage, "bits " + quoted(text) + ": " +
                                         std::string(format_name(format)) + " has " +
                                         std::to_string(format.width()) + " bits, at most " +
                                         to_bits_text(format, format.code_mask()) +
                                         "; a hex-float needs a '.' or a 'p'"};
    }
    value = value << 4 | static_cast<Bits>(digit);
  }
  return Rounded{value, {}};
}

}  // namespace

Result<Rounded> parse_number(const Format& format, std::string_view text, const Mode& mode) {
  if (text.size() > longest_number) {
    return Error{ErrorKind::usage, "number " + quoted(text) + ": " + std::to_string(text.size()) +
                                       " characters, at most " + std::to_string(longest_number) +
                                       " are accepted"};
  }
  std::string_view rest = text;
  bool negative = false;
  bool has_sign = false;
  if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) {
    has_sign = true;
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (equal_ignoring_case(rest, "nan")) {
    return round_pack(format, Exact{Class::nan, false, 0, 0}, mode);
  }
  if (equal_ignoring_case(rest, "inf") || equal_ignoring_case(rest, "infinity")) {
    return round_pack(format, Exact{Class::infinity, negative, 0, 0}, mode);
  }
  if (rest.size() >= 2 && rest[0] == '0' && lower(rest[1]) == 'x') {
    rest.remove_prefix(2);
    const auto parts = take_apart(rest, 16);
    if (!parts) return malformed(text);
    if (parts->has_point || parts->has_exponent) {
      return round_pack(format, exact_from_hex(negative, *parts), mode);
    }
    if (has_sign) {
      return Error{ErrorKind::usage, "bits " + quoted(text) +
                                         ": bits carry their own sign; accepted is 0x3c00, or a "
                                         "hex-float such as -0x1p+3"};
    }
    return parse_bits(format, rest, text);
  }
  auto parts = take_apart(rest, 10);
  if (!parts) return malformed(text);
  return round_pack(format, exact_from_decimal(format, negative, *std::move(parts)), mode);
}

}  // namespace kvsim::softfloat
