// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "softfloat/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "fuzz/property/wide_number.h"
#include "sim/exp.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/rounding.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounding;

constexpr auto ieee_formats =
    std::to_array<Format>({softfloat::binary16, softfloat::bfloat16, softfloat::binary32,
                           softfloat::binary64, softfloat::e5m2, softfloat::tf32});

struct Direction {
  Rounding rounding;
  mpfr_rnd_t mpfr;
  std::string_view name;
};
constexpr auto directions = std::to_array<Direction>({
    {Rounding::ties_to_even, MPFR_RNDN, "ties to even"},
    {Rounding::toward_zero, MPFR_RNDZ, "toward zero"},
    {Rounding::toward_positive, MPFR_RNDU, "upward"},
    {Rounding::toward_negative, MPFR_RNDD, "downward"},
});

/// One operation on three numbers of a format, here and in MPFR, which returns its ternary value.
struct Operation {
  std::string_view name;
  softfloat::Rounded (*ours)(const Format& f, const std::array<Bits, 3>& x, const Mode& mode);
  int (*mpfr)(mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding);
};

constexpr auto operations = std::to_array<Operation>({
    {"add",
     [](const Format& f, const std::array<Bits, 3>& x, const Mode& mode) {
       return softfloat::add(f, x[0], x[1], mode);
     },
     [](mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding) {
       return mpfr_add(result, x[0].get(), x[1].get(), rounding);
     }},
    {"mul",
     [](const Format& f, const std::array<Bits, 3>& x, const Mode& mode) {
       return softfloat::mul(f, x[0], x[1], mode);
     },
     [](mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding) {
       return mpfr_mul(result, x[0].get(), x[1].get(), rounding);
     }},
    {"div",
     [](const Format& f, const std::array<Bits, 3>& x, const Mode& mode) {
       return softfloat::div(f, x[0], x[1], mode);
     },
     [](mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding) {
       return mpfr_div(result, x[0].get(), x[1].get(), rounding);
     }},
    {"sqrt",
     [](const Format& f, const std::array<Bits, 3>& x, const Mode& mode) {
       return softfloat::sqrt(f, x[0], mode);
     },
     [](mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding) {
       return mpfr_sqrt(result, x[0].get(), rounding);
     }},
    {"fma",
     [](const Format& f, const std::array<Bits, 3>& x, const Mode& mode) {
       return softfloat::fma(f, x[0], x[1], x[2], mode);
     },
     [](mpfr_ptr result, const std::array<WideNumber, 3>& x, mpfr_rnd_t rounding) {
       return mpfr_fma(result, x[0].get(), x[1].get(), x[2].get(), rounding);
     }},
});

/// Equal numbers, also of zero's sign; any NaN is any other.
bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

Violation rounds_once(PropertyInput& input) {
  constexpr int cases = 64;
  for (int i = 0; i < cases; ++i) {
    const Format& format = one_of(input.random, std::span<const Format>(ieee_formats));
    const Operation& operation = one_of(input.random, std::span<const Operation>(operations));
    const Direction& direction = one_of(input.random, std::span<const Direction>(directions));
    std::array<Bits, 3> codes{};
    for (Bits& code : codes) code = draw_code(input.random, format);
    const std::array<WideNumber, 3> numbers{
        WideNumber(softfloat::binary64.precision, softfloat::to_double(format, codes[0])),
        WideNumber(softfloat::binary64.precision, softfloat::to_double(format, codes[1])),
        WideNumber(softfloat::binary64.precision, softfloat::to_double(format, codes[2]))};
    WideNumber result(format.precision);
    const int ternary = operation.mpfr(result.get(), numbers, direction.mpfr);
    const double expected = in_range_of(format, result, ternary, direction.mpfr);
    const Bits code = operation.ours(format, codes, {.rounding = direction.rounding}).bits;
    if (same_number(softfloat::to_double(format, code), expected)) continue;
    return fmt::format("{} of {}, {}, of {}, {} and {} is {}, not {:a}", operation.name,
                       softfloat::format_name(format), direction.name, code_text(format, codes[0]),
                       code_text(format, codes[1]), code_text(format, codes[2]),
                       code_text(format, code), expected);
  }
  return std::nullopt;
}

Violation converts_once(PropertyInput& input) {
  constexpr int cases = 64;
  for (int i = 0; i < cases; ++i) {
    const Format& to = one_of(input.random, std::span<const Format>(ieee_formats));
    const Direction& direction = one_of(input.random, std::span<const Direction>(directions));
    // Halves of the last place of a number of `to` as often as anything.
    double x =
        softfloat::to_double(softfloat::binary64, draw_code(input.random, softfloat::binary64));
    if (!input.random.once_in(3)) {
      const double number = softfloat::to_double(to, draw_finite_code(input.random, to));
      const auto half = static_cast<double>(input.random.between(-2, 2)) / 2;
      const int unit = std::max(std::ilogb(number == 0 ? 1 : number), to.emin());
      x = number + std::ldexp(half, unit - to.trailing_bits());
      if (input.random.once_in(3)) x = std::nextafter(x, input.random.once_in(2) ? 1e308 : -1e308);
    }
    const WideNumber exact(softfloat::binary64.precision, x);
    WideNumber result(to.precision);
    const int ternary = mpfr_set(result.get(), exact.get(), direction.mpfr);
    const double expected = in_range_of(to, result, ternary, direction.mpfr);
    const Bits code = softfloat::convert(to, softfloat::binary64, softfloat::from_double(x),
                                         {.rounding = direction.rounding})
                          .bits;
    if (same_number(softfloat::to_double(to, code), expected)) continue;
    return fmt::format("{:a} to {}, {}, is {}, not {:a}", x, softfloat::format_name(to),
                       direction.name, code_text(to, code), expected);
  }
  return std::nullopt;
}

Violation exp_rounds_once(PropertyInput& input) {
  constexpr auto formats = std::to_array<Format>(
      {softfloat::binary16, softfloat::bfloat16, softfloat::binary32, softfloat::binary64});
  constexpr int cases = 16;
  for (int i = 0; i < cases; ++i) {
    const Format& format = one_of(input.random, std::span<const Format>(formats));
    const Direction& direction = one_of(input.random, std::span<const Direction>(directions));
    const Bits x = input.random.once_in(2)
                       ? draw_code(input.random, format)
                       : draw_number(input.random, format, {.lowest = -9, .highest = 6});
    const WideNumber argument(softfloat::binary64.precision, softfloat::to_double(format, x));
    WideNumber result(format.precision);
    const int ternary = mpfr_exp(result.get(), argument.get(), direction.mpfr);
    const double expected = in_range_of(format, result, ternary, direction.mpfr);
    const Bits code = exp_correctly_rounded(format, x, {.rounding = direction.rounding}).bits;
    if (same_number(softfloat::to_double(format, code), expected)) continue;
    return fmt::format("exp of {}, {}, of {} is {}, not {:a}", softfloat::format_name(format),
                       direction.name, code_text(format, x), code_text(format, code), expected);
  }
  return std::nullopt;
}

constexpr auto table = std::to_array<Property>({
    {"operations-round-once",
     "add, mul, div, sqrt and fma give what MPFR gives, in every IEEE format and direction",
     "IEEE 754-2019, clause 5; MPFR", rounds_once},
    {"conversions-round-once", "a binary64 number becomes the number of a format that MPFR gives",
     "IEEE 754-2019, clause 5.4; MPFR", converts_once},
    {"exp-rounds-once", "e^x is what MPFR gives, in four formats and every direction",
     "IEEE 754-2019, clause 9.2; MPFR", exp_rounds_once},
});

}  // namespace

std::span<const Property> arithmetic_properties() { return table; }

}  // namespace kvsim::fuzz
