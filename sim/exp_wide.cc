// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>

#include "sim/exp.h"
#include "softfloat/wide.h"

namespace kvsim {
namespace {

// Fixed point with `fraction_bits` bits after the point; a product needs twice as many.
constexpr int fraction_bits = 384;
using Fixed = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<
    1024, 1024, boost::multiprecision::unsigned_magnitude, boost::multiprecision::unchecked, void>>;

// ⌊ln 2 · 2^384⌋.
const Fixed& ln2() {
  static const Fixed value(
      "0xb17217f7d1cf79abc9e3b39803f2f6af40f343267298b62d8a0d175b8baafa2be7b876206debac98559552fb4a"
      "fa"
      "1b10");
  return value;
}

}  // namespace

softfloat::Exact exp_wide(double x) {
  // |x| = significand · 2^exponent exactly, significand of 53 bits.
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  const auto significand = static_cast<std::uint64_t>(fraction * 0x1p53);
  exponent += fraction_bits - 53;
  Fixed rest = significand;
  if (exponent >= 0) {
    rest <<= exponent;
  } else {
    rest >>= -exponent;
  }
  // x = powers · ln 2 + rest with 0 ≤ rest ≤ ln 2.
  const Fixed quotient = rest / ln2();
  int powers = static_cast<int>(quotient);
  rest -= quotient * ln2();
  if (x < 0) {
    rest = ln2() - rest;
    powers = -powers - 1;
  }
  // Taylor at rest / 2^24, whose 16th power over 16! is below 2^−400; then 24 squarings, each of
  // which doubles the relative error: at the end about 2^30 units of 2^−384.
  constexpr int squarings = 24;
  constexpr unsigned terms = 16;
  rest >>= squarings;
  const Fixed one = Fixed(1) << fraction_bits;
  Fixed sum = one;
  for (unsigned n = terms; n > 0; --n) sum = one + ((rest * sum) >> fraction_bits) / n;
  for (int i = 0; i < squarings; ++i) sum = (sum * sum) >> fraction_bits;
  sum >>= fraction_bits - softfloat::Exact::top;
  const auto cut = static_cast<softfloat::uint128>(sum);
  return softfloat::make_exact<softfloat::uint128>(false, cut, powers - softfloat::Exact::top,
                                                   true);
}

}  // namespace kvsim
