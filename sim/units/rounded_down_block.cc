// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "sim/units/block.h"
#include "softfloat/exact.h"
#include "softfloat/mutants.h"
#include "softfloat/round.h"
#include "softfloat/wide.h"

namespace kvsim::units {
namespace {

using softfloat::Bits;
using softfloat::Class;
using softfloat::fused_product;
using softfloat::fused_term;
using softfloat::FusedTerm;
using softfloat::int128;
using softfloat::uint128;

/// Below the exponent of every product, so that a zero never raises the largest one.
constexpr int zero_product_exponent = -999;
/// The exponent that the alignment reads for infinity and NaN, whose significand it does not see.
constexpr int special_exponent = -1;

/// units × 2^exponent.
struct FixedPoint {
  int128 units = 0;
  int exponent = 0;
};

/// Rounded down to a multiple of 2^exponent; exact where the number is one already.
FixedPoint floor_at(const FixedPoint& x, int exponent) {
  const int shift = exponent - x.exponent;
  if (shift <= 0 || x.units == 0) return x;
  if (mutant_is_on(Mutant::floor_toward_zero) && x.units < 0) {
    return {shift > 126 ? 0 : -(-x.units >> shift), exponent};
  }
  if (shift > 126) return {x.units < 0 ? -1 : 0, exponent};
  return {x.units >> shift, exponent};  // arithmetic shift: toward −∞
}

FixedPoint add(FixedPoint x, FixedPoint y) {
  if (x.units == 0) return y;
  if (y.units == 0) return x;
  const int exponent = std::min(x.exponent, y.exponent);
  x.units *= int128{1} << (x.exponent - exponent);
  y.units *= int128{1} << (y.exponent - exponent);
  return {x.units + y.units, exponent};
}

uint128 magnitude(int128 units) {
  return units < 0 ? -static_cast<uint128>(units) : static_cast<uint128>(units);
}

/// ⌊log2 |x|⌋, at least binary32's smallest exponent.
int exponent_of(const FixedPoint& x) {
  if (x.units == 0) return -126;
  return std::max(x.exponent + 127 - softfloat::leading_zeros(magnitude(x.units)), -126);
}

/// Products 2^128 and above are infinite.
bool overflows(const FusedTerm& product) {
  const int top = 63 - softfloat::leading_zeros(product.significand) - product.fraction_bits;
  return product.kind == Class::finite && product.exponent + top >= 128;
}

/// The products of a block whose index is `first`, `first + step`, …: their largest exponent, and
/// their sum, each truncated toward zero to F bits below it.
struct Group {
  int exponent = zero_product_exponent;
  FixedPoint sum;
};

Group truncated_sum(const MatrixUnit& unit, std::span<const FusedTerm> products, std::size_t first,
                    std::size_t step) {
  Group group;
  for (std::size_t i = first; i < products.size(); i += step) {
    if (products[i].kind != Class::zero) {
      group.exponent = std::max(group.exponent, products[i].exponent);
    }
  }
  group.sum.exponent = group.exponent - unit.fraction_bits;
  for (std::size_t i = first; i < products.size(); i += step) {
    const FusedTerm& product = products[i];
    if (product.kind != Class::finite) continue;
    const int shift = group.sum.exponent - (product.exponent - product.fraction_bits);
    if (shift >= 64) continue;
    const uint128 cut =
        shift >= 0 ? uint128{product.significand} >> shift : uint128{product.significand} << -shift;
    group.sum.units += product.negative ? -static_cast<int128>(cut) : static_cast<int128>(cut);
  }
  return group;
}

/// What infinities and NaN among the terms come to; zero where there are none.
Class special_result(std::span<const FusedTerm> terms, bool* negative) {
  bool plus = false;
  bool minus = false;
  for (const FusedTerm& term : terms) {
    if (term.kind == Class::nan) return Class::nan;
    plus |= term.kind == Class::infinity && !term.negative;
    minus |= term.kind == Class::infinity && term.negative;
  }
  *negative = minus;
  if (plus && minus) return Class::nan;
  return plus || minus ? Class::infinity : Class::zero;
}

}  // namespace

Bits rounded_down_block(const MatrixUnit& unit, Block block, Bits c_code) {
  const bool grouped = unit.operation == UnitOperation::gtr_fdpa;
  const int fraction = unit.fraction_bits;
  std::vector<FusedTerm> terms;
  for (const Pair& pair : block) {
    FusedTerm product = fused_product(unit.input, pair.a, unit.input, pair.b);
    if (overflows(product)) product.kind = Class::infinity;
    if (product.kind == Class::nan || product.kind == Class::infinity) {
      product.exponent = special_exponent;
    }
    terms.push_back(product);
  }
  std::array<Group, 2> groups;
  groups[0] = truncated_sum(unit, terms, 0, grouped ? 2 : 1);
  if (grouped) groups[1] = truncated_sum(unit, terms, 1, 2);
  const int product_exponent = std::max(groups[0].exponent, groups[1].exponent);

  FusedTerm c = fused_term(unit.output, c_code);
  if (c.kind == Class::zero) c.exponent = -126;
  if (c.kind == Class::nan || c.kind == Class::infinity) c.exponent = special_exponent;
  const int exponent = std::max(product_exponent, c.exponent);
  // The addend of a grouped unit is dropped where it lies far below, whatever it is.
  if (grouped && c.exponent < exponent - fraction - 1) c.kind = Class::zero;
  terms.push_back(c);

  const Conversion conversion = conversion_of(unit);
  bool negative = false;
  const Class special = special_result(terms, &negative);
  if (special != Class::zero) {
    const softfloat::Exact value{special, negative, 0, 0};
    return with_unit_nan(unit, softfloat::round_pack(conversion.format, value).bits);
  }

  FixedPoint sum = groups[0].sum;
  if (grouped) {
    sum = add(floor_at(groups[0].sum, product_exponent - fraction),
              floor_at(groups[1].sum, product_exponent - fraction));
  }
  sum = floor_at(sum, exponent - unit.final_bits - 1);
  if (c.kind == Class::finite) {
    FixedPoint addend{static_cast<int128>(c.significand), c.exponent - c.fraction_bits};
    if (c.negative) addend.units = -addend.units;
    sum = add(sum, floor_at(addend, exponent - fraction));
  }
  if (unit.final_rounding_down) sum = floor_at(sum, exponent_of(sum) - unit.final_bits);
  if (sum.units == 0) {
    const bool all_negative = std::all_of(terms.begin(), terms.end(), [](const FusedTerm& term) {
      return term.kind == Class::zero && term.negative;
    });
    return all_negative ? conversion.format.sign_bit() : Bits{0};
  }
  const softfloat::Exact value =
      softfloat::make_exact(sum.units < 0, magnitude(sum.units), sum.exponent);
  return softfloat::round_pack(conversion.format, value, conversion.mode).bits;
}

}  // namespace kvsim::units
