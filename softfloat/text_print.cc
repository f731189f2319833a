// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <boost/multiprecision/cpp_int.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "softfloat/exact.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/text.h"
#include "softfloat/wide.h"

namespace kvsim::softfloat {
namespace {

using boost::multiprecision::cpp_int;

constexpr std::string_view hex_digits = "0123456789abcdef";

// Decimal digits d1 d2 d3 …, without trailing zeros, of the number d1.d2d3… × 10^exponent.
struct Digits {
  std::string digits;
  int exponent = 0;
};

cpp_int power_of_ten(int exponent) { return pow(cpp_int(10), static_cast<unsigned>(exponent)); }

// Text of zero, infinity or NaN; empty for any other number.
std::string special_text(const Exact& value, std::string_view zero) {
  switch (value.kind) {
    case Class::nan:
      return "nan";
    case Class::infinity:
      return value.negative ? "-inf" : "inf";
    case Class::zero:
      return (value.negative ? "-" : "") + std::string(zero);
    case Class::finite:
      break;
  }
  return {};
}

// Exponent of the unit in the last place of a finite number.
int unit_exponent(const Format& format, const Exact& value) {
  const int exponent = value.exponent > format.emin() ? value.exponent : format.emin();
  return exponent - format.trailing_bits();
}

// |value| in units of its last place: below 2^precision.
cpp_int in_units(const Format& format, const Exact& value) {
  const int shift = unit_exponent(format, value) - (value.exponent - Exact::top);
  return cpp_int(value.significand >> shift);
}

Digits digits_of(const cpp_int& integer, int decimal_exponent) {
  Digits out;
  out.digits = integer.str();
  out.exponent = static_cast<int>(out.digits.size()) - 1 + decimal_exponent;
  out.digits.resize(out.digits.find_last_not_of('0') + 1);
  return out;
}

Digits exact_digits(const Format& format, const Exact& value) {
  const cpp_int significand = in_units(format, value);
  const int exponent = unit_exponent(format, value);
  if (exponent >= 0) return digits_of(significand << exponent, 0);
  // 2^-n = 5^n × 10^-n
  return digits_of(significand * pow(cpp_int(5), static_cast<unsigned>(-exponent)), exponent);
}

// Shortest digits by exact integers: every number that rounds to the value lies between `low` and
// `high`, halfway to its neighbours; the first power of ten, from above, that has a multiple there
// gives the fewest digits. (The approach of Steele and White 1990, without its digit generation.)
Digits shortest_digits(const Format& format, Bits bits, const Exact& value) {
  // All in units of a quarter of the last place.
  const int unit = unit_exponent(format, value) - 2;
  cpp_int number = in_units(format, value) * 4;
  // The neighbour below a power of two is only half as far away, except in the lowest binade, where
  // the subnormals continue its spacing.
  const bool close_below = value.significand == uint128{1} << Exact::top &&
                           (value.exponent > format.emin() || !format.has_zero());
  cpp_int low = number - (close_below ? 1 : 2);
  cpp_int high = number + (mutant_is_on(Mutant::short_decimal) ? 4 : 2);
  const auto reads_back = [&](const cpp_int& magnitude) {
    const auto exact = make_exact<uint128>(value.negative, magnitude.convert_to<uint128>(), unit);
    const Rounded rounded = round_pack(format, exact);
    return rounded.bits == bits && !rounded.flags.overflow;
  };
  const bool with_low = reads_back(low);
  const bool with_high = reads_back(high);

  // 10^power ≤ value < 10^(power + 1), from an estimate that may be one too small.
  int power = value.exponent * 30103 / 100000 - 1;
  // Scaled so that one step of the search is the integer `step`.
  cpp_int step = 1;
  if (unit >= 0) {
    number <<= unit;
    low <<= unit;
    high <<= unit;
  } else {
    step <<= -unit;
  }
  const auto multiply_all = [&](const cpp_int& factor) {
    number *= factor;
    low *= factor;
    high *= factor;
  };
  if (power >= 0) {
    step *= power_of_ten(power);
  } else {
    multiply_all(power_of_ten(-power));
  }
  while (step * 10 <= number) {
    step *= 10;
    ++power;
  }
  const auto inside = [&](const cpp_int& candidate) {
    return (candidate > low || (with_low && candidate == low)) &&
           (candidate < high || (with_high && candidate == high));
  };
  for (;; --power, multiply_all(10)) {
    const cpp_int quotient = number / step;
    const cpp_int below = quotient * step;
    const cpp_int above = below + step;
    const bool below_reads_back = inside(below);
    const bool above_reads_back = inside(above);
    if (!below_reads_back && !above_reads_back) continue;
    bool take_above = above_reads_back;
    if (below_reads_back && above_reads_back) {
      const cpp_int twice = 2 * (number - below);
      take_above = twice > step || (twice == step && bit_test(quotient, 0));
    }
    return digits_of(take_above ? quotient + 1 : quotient, power);
  }
}

std::string scientific_text(const Digits& number) {
  std::string out = number.digits.substr(0, 1);
  if (number.digits.size() > 1) out += "." + number.digits.substr(1);
  const int magnitude = number.exponent < 0 ? -number.exponent : number.exponent;
  out += number.exponent < 0 ? "e-" : "e+";
  if (magnitude < 10) out += "0";
  return out + std::to_string(magnitude);
}

std::string plain_text(const Digits& number) {
  const int count = static_cast<int>(number.digits.size());
  if (number.exponent < 0) {
    return "0." + std::string(static_cast<std::size_t>(-number.exponent - 1), '0') + number.digits;
  }
  if (number.exponent >= count - 1) {
    const int zeros = number.exponent + 1 - count;
    return number.digits + std::string(static_cast<std::size_t>(zeros), '0');
  }
  const int point = number.exponent + 1;
  return number.digits.substr(0, static_cast<std::size_t>(point)) + "." +
         number.digits.substr(static_cast<std::size_t>(point));
}

// The shorter of the two notations; plain if they are equal.
std::string with_sign(const Exact& value, std::string plain, std::string scientific) {
  std::string& shorter = plain.size() <= scientific.size() ? plain : scientific;
  return value.negative ? "-" + std::move(shorter) : std::move(shorter);
}

}  // namespace

std::string to_bits_text(const Format& format, Bits bits) {
  std::string out = "0x";
  for (int digit = (format.width() + 3) / 4 - 1; digit >= 0; --digit) {
    out += hex_digits[(bits & format.code_mask()) >> (4 * digit) & 0xf];
  }
  return out;
}

std::string to_hex_float(const Format& format, Bits bits) {
  const auto value = unpack<uint128>(format, bits);
  if (value.kind != Class::finite) return special_text(value, "0x0p+0");
  std::string out = "0x1";
  // The leading one leaves at the top; what follows it are the digits.
  uint128 fraction = value.significand << (digits<uint128> - Exact::top);
  if (fraction != 0) out += '.';
  for (; fraction != 0; fraction <<= 4) {
    out += hex_digits[static_cast<std::size_t>(fraction >> (digits<uint128> - 4))];
  }
  out += value.exponent < 0 ? "p" : "p+";
  out += std::to_string(value.exponent);
  return value.negative ? "-" + out : out;
}

std::string to_decimal(const Format& format, Bits bits) {
  const auto value = unpack<uint128>(format, bits);
  if (value.kind != Class::finite) return special_text(value, "0");
  const Digits number = shortest_digits(format, bits & format.code_mask(), value);
  // Zeros between the last digit and the point would be invented ones: the exact digits, which are
  // not more, are closer. The value is an integer there, because both it and the shortest number
  // are multiples of its unit in the last place if that unit is below one. Beyond 30 digits the
  // scientific notation of any shortest number is shorter.
  const int count = static_cast<int>(number.digits.size());
  const bool fills = number.exponent >= count && number.exponent <= 30;
  return with_sign(value, plain_text(fills ? exact_digits(format, value) : number),
                   scientific_text(number));
}

std::string to_exact_decimal(const Format& format, Bits bits) {
  const auto value = unpack<uint128>(format, bits);
  if (value.kind != Class::finite) return special_text(value, "0");
  const Digits number = exact_digits(format, value);
  return with_sign(value, plain_text(number), scientific_text(number));
}

}  // namespace kvsim::softfloat
