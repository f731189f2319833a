// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/exact_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace kvsim {
namespace {

using boost::multiprecision::cpp_int;
using Kind = ExactValue::Kind;
using Rational = ExactValue::Rational;

Rational power_of_two(int exponent) {
  const cpp_int power = cpp_int(1) << static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
  return exponent < 0 ? Rational(1, power) : Rational(power);
}

cpp_int power_of_ten(int exponent) {
  return boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(exponent));
}

bool is_negative(const ExactValue& a) {
  return a.kind == Kind::number && a.number != 0 ? a.number < 0 : a.negative;
}

ExactValue nan_value() { return {.kind = Kind::nan}; }
ExactValue infinite_value(bool negative) { return {.kind = Kind::infinity, .negative = negative}; }
ExactValue number_value(Rational number, bool negative_zero) {
  ExactValue value;
  value.negative = number == 0 ? negative_zero : number < 0;
  value.number = std::move(number);
  return value;
}

// The exponent of two of a result's last place; see ulp_error.
int last_place_exponent(const softfloat::Format& format, softfloat::Bits bits) {
  const auto field = static_cast<int>((bits & format.magnitude_mask()) >> format.trailing_bits());
  const int exponent = field == 0 && format.has_zero() ? format.emin() : field - format.bias;
  return exponent - format.precision + 1;
}

// Decimal digits of a positive number, truncated: number = 0.d1d2… × 10^point.
struct Digits {
  std::string digits;
  int point = 0;
  bool is_complete = false;
};

Digits decimal_digits(const Rational& positive, int count) {
  const cpp_int top = boost::multiprecision::numerator(positive);
  const cpp_int bottom = boost::multiprecision::denominator(positive);
  // log10(2) × the difference of the bit lengths, at most one off.
  const int bits = static_cast<int>(boost::multiprecision::msb(top)) -
                   static_cast<int>(boost::multiprecision::msb(bottom));
  int point = static_cast<int>(std::floor(bits * 0.30103)) + 1;
  for (;;) {
    const int shift = count - point;
    const cpp_int scaled_top = shift >= 0 ? top * power_of_ten(shift) : top;
    const cpp_int scaled_bottom = shift >= 0 ? bottom : bottom * power_of_ten(-shift);
    cpp_int quotient;
    cpp_int rest;
    boost::multiprecision::divide_qr(scaled_top, scaled_bottom, quotient, rest);
    std::string digits = quotient.str();
    const int surplus = static_cast<int>(digits.size()) - count;
    if (surplus == 0) return {std::move(digits), point, rest == 0};
    point += surplus;  // the estimate was one off
  }
}

std::string decimal_text(const Digits& number, bool is_complete) {
  std::string digits = number.digits;
  if (is_complete) digits.erase(digits.find_last_not_of('0') + 1);
  const std::string more = is_complete ? "" : "…";
  const int point = number.point;
  const auto count = static_cast<int>(digits.size());
  if (point > 40 || point < -5) {
    const int exponent = point - 1;
    std::string out = digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    return out + more + fmt::format("e{:+03}", exponent);
  }
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits + more;
  if (count <= point) {
    if (!is_complete && count < point) {  // digits unknown before the point
      return digits.substr(0, 1) + "." + digits.substr(1) + more +
             fmt::format("e{:+03}", point - 1);
    }
    return digits + std::string(static_cast<std::size_t>(point - count), '0') + more;
  }
  const auto at = static_cast<std::size_t>(point);
  return digits.substr(0, at) + "." + digits.substr(at) + more;
}

}  // namespace

ExactValue exact_value(const softfloat::Format& format, softfloat::Bits bits) {
  using softfloat::Specials;
  const bool negative = (bits & format.sign_bit()) != 0;
  const softfloat::Bits magnitude = bits & format.magnitude_mask();
  switch (format.specials) {
    case Specials::ieee:
      if (magnitude > format.infinity()) return nan_value();
      if (magnitude == format.infinity()) return infinite_value(negative);
      break;
    case Specials::nan_only:
    case Specials::exponent_only:
      if (magnitude == format.magnitude_mask()) return nan_value();
      break;
    case Specials::nan_is_negative_zero:
      if (bits == format.sign_bit()) return nan_value();
      break;
    case Specials::none:
      break;
  }
  softfloat::Bits significand = magnitude & format.trailing_mask();
  const bool is_normal = (magnitude >> format.trailing_bits()) != 0 || !format.has_zero();
  if (is_normal) significand |= softfloat::Bits{1} << format.trailing_bits();
  Rational number = Rational(significand) * power_of_two(last_place_exponent(format, bits));
  return number_value(negative ? Rational(-number) : number, negative);
}

ExactValue exact_negated(ExactValue a) {
  a.negative = !is_negative(a);
  a.number = -a.number;
  return a;
}

ExactValue exact_add(const ExactValue& a, const ExactValue& b) {
  if (a.kind == Kind::nan || b.kind == Kind::nan) return nan_value();
  if (a.kind == Kind::infinity && b.kind == Kind::infinity && a.negative != b.negative) {
    return nan_value();
  }
  if (a.kind == Kind::infinity) return a;
  if (b.kind == Kind::infinity) return b;
  return number_value(a.number + b.number, is_negative(a) && is_negative(b));
}

ExactValue exact_multiply(const ExactValue& a, const ExactValue& b) {
  if (a.kind == Kind::nan || b.kind == Kind::nan) return nan_value();
  const bool negative = is_negative(a) != is_negative(b);
  if (a.kind == Kind::infinity || b.kind == Kind::infinity) {
    const bool has_zero =
        (a.kind == Kind::number && a.number == 0) || (b.kind == Kind::number && b.number == 0);
    return has_zero ? nan_value() : infinite_value(negative);
  }
  return number_value(a.number * b.number, negative);
}

ExactValue exact_divide(const ExactValue& a, const ExactValue& b) {
  if (a.kind == Kind::nan || b.kind == Kind::nan) return nan_value();
  const bool negative = is_negative(a) != is_negative(b);
  if (a.kind == Kind::infinity) {
    return b.kind == Kind::infinity ? nan_value() : infinite_value(negative);
  }
  if (b.kind == Kind::infinity) return number_value(0, negative);
  if (b.number == 0) return a.number == 0 ? nan_value() : infinite_value(negative);
  return number_value(a.number / b.number, negative);
}

ExactValue exact_square_root(const ExactValue& a) {
  if (a.kind == Kind::nan) return a;
  if (a.kind == Kind::infinity) return a.negative ? nan_value() : a;
  if (a.number == 0) return a;
  if (a.number < 0) return nan_value();
  // Numerator and denominator of a code's value are a significand and a power of two; scaled by
  // 4^k the root keeps at least 400 bits.
  const cpp_int top = boost::multiprecision::numerator(a.number);
  const cpp_int bottom = boost::multiprecision::denominator(a.number);
  const unsigned bottom_bits = boost::multiprecision::msb(bottom);
  const unsigned half_shift = 1024 + bottom_bits;
  cpp_int rest;
  const cpp_int root =
      boost::multiprecision::sqrt(cpp_int((top << (2 * half_shift)) / bottom), rest);
  ExactValue value = number_value(Rational(root, cpp_int(1) << half_shift), false);
  value.is_truncated = rest != 0 || (top << (2 * half_shift)) % bottom != 0;
  return value;
}

std::string to_text(const ExactValue& value) {
  if (value.kind == Kind::nan) return "nan";
  if (value.kind == Kind::infinity) return value.negative ? "-inf" : "inf";
  if (value.number == 0) return value.negative ? "-0" : "0";
  const std::string sign = value.number < 0 ? "-" : "";
  const Rational positive = boost::multiprecision::abs(value.number);
  const Digits all = decimal_digits(positive, 40);
  if (all.is_complete && !value.is_truncated) return sign + decimal_text(all, true);
  return sign + decimal_text(decimal_digits(positive, 20), false);
}

UlpError ulp_error(const softfloat::Format& format, softfloat::Bits result,
                   const ExactValue& exact) {
  const ExactValue rounded = exact_value(format, result);
  if (rounded.kind == Kind::nan || exact.kind == Kind::nan) return {};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (rounded.kind == Kind::infinity || exact.kind == Kind::infinity) {
    if (rounded.kind == exact.kind && rounded.negative == exact.negative) return {true, 0};
    const bool above = rounded.kind == Kind::infinity ? !rounded.negative : exact.negative;
    return {true, above ? infinity : -infinity};
  }
  const Rational difference =
      (rounded.number - exact.number) / power_of_two(last_place_exponent(format, result));
  if (difference == 0) return {true, 0};
  const Digits digits = decimal_digits(boost::multiprecision::abs(difference), 6);
  const std::string text =
      (difference < 0 ? "-0." : "0.") + digits.digits + "e" + std::to_string(digits.point);
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc::result_out_of_range) {
    value = digits.point < 0 ? 0 : (difference < 0 ? -infinity : infinity);
  }
  return {true, value};
}

}  // namespace kvsim
