// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuzz/flip/random.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"

/// Random inputs that several properties share.
namespace kvsim::fuzz {

/// One of a list.
template <class T>
[[nodiscard]] const T& one_of(Random& random, std::span<const T> list) {
  return list[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(list.size())))];
}

/// Any code of the format; every third one is at an edge: zero, the smallest and largest subnormal
/// and normal numbers, infinity, NaN, one and its neighbours.
[[nodiscard]] softfloat::Bits draw_code(Random& random, const softfloat::Format& format);
/// The same without infinities and NaN.
[[nodiscard]] softfloat::Bits draw_finite_code(Random& random, const softfloat::Format& format);

/// Exponents of drawn numbers, from `lowest` to `highest`, all equally likely.
struct Exponents {
  int lowest = -4;
  int highest = 3;
};
/// A number of the format of random sign, exponent and significand; the exponents must be normal
/// ones of the format.
[[nodiscard]] softfloat::Bits draw_number(Random& random, const softfloat::Format& format,
                                          const Exponents& exponents);

/// The factors of a sum of products, as codes of `format`.
struct Factors {
  softfloat::Format format;
  std::vector<softfloat::Bits> a;
  std::vector<softfloat::Bits> b;
};
[[nodiscard]] Factors draw_factors(Random& random, const softfloat::Format& format,
                                   std::int64_t terms, const Exponents& exponents);
/// Factors that are whole numbers of at most `largest` in magnitude.
[[nodiscard]] Factors draw_integers(Random& random, const softfloat::Format& format,
                                    std::int64_t terms, std::int64_t largest);

/// "a 0x1p+0 …, b 0x1p+0 …": at most 16 of each.
[[nodiscard]] std::string to_text(const Factors& factors);
/// A number of the format as a hex float.
[[nodiscard]] std::string code_text(const softfloat::Format& format, softfloat::Bits code);
/// Codes as floats; `format` has no more numbers than binary32.
[[nodiscard]] std::vector<float> floats_of(const softfloat::Format& format,
                                           std::span<const softfloat::Bits> codes);

/// What draw_order() may draw.
struct OrderChoice {
  bool units = false;    ///< a matrix unit that reads `input`, where there is one
  bool rounded = false;  ///< partial sums in a narrower format
  softfloat::Format input;
  softfloat::Format accumulator;
};
/// A random order that can sum n terms of these formats, up to three items deep, without a perm.
[[nodiscard]] Order draw_order(Random& random, std::int64_t n, const OrderChoice& choice);

/// "rounded", "fused" or "exact".
[[nodiscard]] Product draw_product(Random& random);

/// A permutation of 0 … n − 1.
[[nodiscard]] std::vector<std::size_t> draw_permutation(Random& random, std::size_t n);

}  // namespace kvsim::fuzz
