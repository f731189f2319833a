// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/units/block.h"
#include "softfloat/arithmetic.h"
#include "softfloat/fused_sum.h"

namespace kvsim::units {
namespace {

using softfloat::Bits;
using softfloat::Class;
using softfloat::fused_product;
using softfloat::fused_term;
using softfloat::FusedTerm;

bool has_nan_scale(const MatrixUnit& unit, const Pair& pair) {
  return softfloat::is_nan(unit.scale, pair.a_scale) || softfloat::is_nan(unit.scale, pair.b_scale);
}

/// The product of two numbers and two scales.
FusedTerm scaled_product(const MatrixUnit& unit, const Pair& pair) {
  FusedTerm term = fused_product(unit.input, pair.a, unit.input, pair.b);
  const FusedTerm scale = fused_product(unit.scale, pair.a_scale, unit.scale, pair.b_scale);
  if (scale.kind == Class::nan) return {.kind = Class::nan};
  if (term.kind != Class::finite) return term;
  term.exponent += scale.exponent;
  term.significand *= scale.significand;
  term.fraction_bits += scale.fraction_bits;
  return term;
}

/// The exact dot product of a group, times the significands of its scales. It is aligned by the
/// exponents of the scales alone; a group that cancels keeps that exponent, a group of zero
/// products, or with a zero scale, is a zero. Only 4-bit elements have such units: their products
/// are multiples of 1/4 of at most 36, so everything fits an int64.
FusedTerm scaled_group(const MatrixUnit& unit, Block group) {
  constexpr int product_fraction_bits = 2;
  bool nan = false;
  bool any_product = false;
  bool all_negative = true;
  std::int64_t sum = 0;
  for (const Pair& pair : group) {
    const FusedTerm product = fused_product(unit.input, pair.a, unit.input, pair.b);
    nan |= has_nan_scale(unit, pair);
    all_negative &= product.negative;
    if (product.kind != Class::finite) continue;
    any_product = true;
    const int shift = product.exponent - product.fraction_bits + product_fraction_bits;
    const auto magnitude = static_cast<std::int64_t>(product.significand << shift);
    sum += product.negative ? -magnitude : magnitude;
  }
  if (nan) return {.kind = Class::nan};
  const FusedTerm scale =
      fused_product(unit.scale, group.front().a_scale, unit.scale, group.front().b_scale);
  if (!any_product || scale.kind == Class::zero) {
    return {.kind = Class::zero, .negative = any_product ? sum < 0 : all_negative};
  }
  const std::uint64_t magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  return {.kind = Class::finite,
          .negative = sum < 0,
          .exponent = scale.exponent,
          .significand = magnitude * scale.significand,
          .fraction_bits = scale.fraction_bits + product_fraction_bits};
}

std::vector<FusedTerm> block_terms(const MatrixUnit& unit, Block block) {
  std::vector<FusedTerm> terms;
  if (unit.operation == UnitOperation::gst_fdpa) {
    constexpr std::size_t group = 16;
    for (std::size_t i = 0; i < block.size(); i += group) {
      terms.push_back(scaled_group(unit, block.subspan(i, std::min(group, block.size() - i))));
    }
    return terms;
  }
  for (const Pair& pair : block) {
    terms.push_back(unit.operation == UnitOperation::st_fdpa
                        ? scaled_product(unit, pair)
                        : fused_product(unit.input, pair.a, unit.input, pair.b));
  }
  return terms;
}

}  // namespace

Bits truncated_block(const MatrixUnit& unit, Block block, Bits c) {
  std::vector<FusedTerm> terms = block_terms(unit, block);
  terms.push_back(fused_term(unit.output, c));
  const Conversion conversion = conversion_of(unit);
  softfloat::FusedSum sum;
  sum.fraction_bits = unit.fraction_bits;
  sum.zero_exponent = unit.zero_exponent;
  sum.output = conversion.format;
  sum.mode = conversion.mode;
  return with_unit_nan(unit, softfloat::fused_sum(terms, sum).bits << conversion.unused_bits);
}

}  // namespace kvsim::units
