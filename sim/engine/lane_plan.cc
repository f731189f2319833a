// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/lane_plan.h"

#include <bit>
#include <limits>

#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/mutants.h"

namespace kvsim::engine {
namespace {

using softfloat::Format;
using softfloat::Specials;

constexpr int float_precision = 24;
constexpr int float_lowest_bit = -149;  // exponent of the smallest positive float
constexpr int double_precision = 53;

/// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// Exponent of the smallest positive number.
int lowest_bit(const Format& f) { return f.emin() - f.trailing_bits(); }

/// Every product of two numbers of `input` is a number of `accumulator`.
bool holds_products(const Format& accumulator, const Format& input) {
  return 2 * input.precision <= accumulator.precision &&
         2 * lowest_bit(input) >= lowest_bit(accumulator) &&
         2 * (input.emax() + 1) <= accumulator.emax();
}

/// Every finite number of `input` is a number of `accumulator`.
bool holds_terms(const Format& accumulator, const Format& input) {
  return input == accumulator ||
         (input.precision <= accumulator.precision &&
          lowest_bit(input) >= lowest_bit(accumulator) && input.emax() < accumulator.emax());
}

/// Multiplying in float and then rounding to the accumulator rounds as if once.
bool float_products_round_once(const Format& accumulator, const Format& input, bool plain_terms) {
  if (plain_terms || accumulator == softfloat::binary32) return true;
  // The float product must be exact. Its bits fit; where its last bit lies below the last bit of a
  // float, the product must be so small that the accumulator makes it zero with or without that
  // bit: a product with exponent e has its last bit at e − (2p − 1) or above.
  if (2 * input.precision > float_precision) return false;
  if (2 * lowest_bit(input) >= float_lowest_bit) return true;
  const int largest_inexact = float_lowest_bit + 2 * input.precision - 2;
  return largest_inexact < accumulator.emin() - accumulator.precision;
}

/// Adding two accumulators in float and then rounding rounds as if once: 24 ≥ 2p + 2 (Figueroa); a
/// sum in the subnormal range is exact.
bool float_sums_round_once(const Format& accumulator) {
  return accumulator == softfloat::binary32 || 2 * accumulator.precision + 2 <= float_precision;
}

/// The format is binary32 with fewer significand bits.
bool is_truncated_binary32(const Format& f) {
  return f.specials == Specials::ieee && f.exponent_bits == 8 && f.bias == 127 &&
         f.precision < float_precision;
}

LaneKind float_kind(const Format& f) {
  if (f == softfloat::binary32) return LaneKind::binary32;
  if (f == softfloat::binary16) return LaneKind::binary16;
  if (is_truncated_binary32(f)) return LaneKind::truncated;
  // RoundNarrow needs room in float above the largest number; else the doubles have it.
  return f.emax() < 64 && f.emin() > -100 ? LaneKind::narrow : LaneKind::wide;
}

LanePlan make_plan(const Format& f, LaneKind kind) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  const int lane_precision = kind == LaneKind::wide ? double_precision : float_precision;
  LanePlan plan;
  plan.kind = kind;
  plan.clears_negative_zero = !f.has_negative_zero();
  plan.discarded_bits = float_precision - f.precision;
  plan.smallest_normal = power_of_two(f.emin());
  plan.largest_finite = softfloat::to_double(f, f.max_finite());
  plan.overflow_result = f.has_infinity() ? infinity
                         : f.has_nan()    ? not_a_number
                                          : plan.largest_finite;
  plan.nan_result = f.has_nan() ? not_a_number : plan.largest_finite;
  plan.shift = power_of_two(lane_precision - f.precision);
  // Without infinity and NaN nothing else shows that a sum has overflowed on the way.
  plan.saturation = f.has_nan() ? infinity : plan.largest_finite;
  plan.unit_roundoff = power_of_two(-f.precision);
  return plan;
}

}  // namespace

bool lanes_hold(const Format& f) {
  return f.has_sign && f.has_zero() && f.precision >= 2 && f.precision <= float_precision &&
         f.emax() <= 127 && lowest_bit(f) >= float_lowest_bit;
}

LanePlan plan_lanes(Product product, const Format& input, const Format& accumulator,
                    bool plain_terms) {
  const bool product_is_exact =
      plain_terms ? holds_terms(accumulator, input) : holds_products(accumulator, input);
  // A product that the accumulator holds is rounded or not, all the same.
  if (product == Product::exact && product_is_exact) product = Product::rounded;
  LaneKind kind = float_kind(accumulator);
  const bool float_lanes = product == Product::rounded
                               ? float_products_round_once(accumulator, input, plain_terms) &&
                                     float_sums_round_once(accumulator)
                               : product == Product::fused && kind == LaneKind::binary32;
  if (!float_lanes) kind = LaneKind::wide;
  LanePlan plan = make_plan(accumulator, kind);
  plan.product = product;
  if (mutant_is_on(Mutant::engine_is_not_fused)) plan.product = Product::rounded;
  plan.product_is_exact = product_is_exact;
  return plan;
}

LanePlan plan_rounding(const Format& format) { return make_plan(format, float_kind(format)); }

}  // namespace kvsim::engine
