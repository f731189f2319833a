// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sum_ops.h"

#include <vector>

#include "sim/units/dot.h"
#include "softfloat/arithmetic.h"
#include "softfloat/exact.h"
#include "softfloat/exact_sum.h"
#include "softfloat/mutants.h"
#include "softfloat/operations.h"
#include "softfloat/round.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Class;
using softfloat::Exact;
using softfloat::ExactAccumulator;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;
using softfloat::uint128;

/// A product before rounding, and whether forming it was an invalid operation.
struct ExactProduct {
  Exact value;
  bool invalid = false;
};

ExactProduct multiply(const Format& f, Bits a, Bits b, const Mode& mode) {
  const Exact x = softfloat::unpack<uint128>(f, a, mode.subnormals);
  const Exact y = softfloat::unpack<uint128>(f, b, mode.subnormals);
  const bool negative = x.negative != y.negative;
  const bool zero_times_infinity = (x.kind == Class::zero && y.kind == Class::infinity) ||
                                   (x.kind == Class::infinity && y.kind == Class::zero);
  if (zero_times_infinity || x.kind == Class::nan || y.kind == Class::nan) {
    const bool signaling = softfloat::is_signaling_nan(f, a) || softfloat::is_signaling_nan(f, b);
    return {{Class::nan, false, 0, 0}, zero_times_infinity || signaling};
  }
  if (x.kind == Class::infinity || y.kind == Class::infinity) {
    return {{Class::infinity, negative, 0, 0}};
  }
  return {softfloat::detail::multiply_exact(x, y)};
}

}  // namespace

SumOps::SumOps(const Order& order, Product product, const Format& input, const Format& accumulator,
               std::span<const Bits> a, std::span<const Bits> b, const Mode& mode)
    : product_(product),
      input_(input),
      accumulator_(accumulator),
      a_(a),
      b_(b),
      mode_(mode),
      unit_(unit_of(order)) {}

SumOps::Value SumOps::first(std::int64_t i) {
  switch (product_) {
    case Product::rounded:
      return rounded_product(i);
    case Product::fused:
      return multiply_add(zero(), i);
    case Product::exact:
      break;
  }
  return {0, i};
}

SumOps::Value SumOps::add_term(const Value& total, std::int64_t i) {
  if (product_ == Product::rounded) return add(total, rounded_product(i));
  if (total.term < 0) return multiply_add(total, i);
  ExactAccumulator sum;  // the exact sum of two products may need more bits than an Exact has
  bool invalid = accumulate(sum, total.term);
  invalid |= accumulate(sum, i);
  return finish(sum, invalid);
}

SumOps::Value SumOps::add(const Value& left, const Value& right) {
  if (left.term >= 0 && right.term >= 0) return add_term(left, right.term);
  if (left.term >= 0) return multiply_add(right, left.term);
  if (right.term >= 0) return multiply_add(left, right.term);
  return note(softfloat::add(accumulator_, left.bits, right.bits, mode_));
}

SumOps::Value SumOps::exact(const OrderRange& range, bool from_zero) {
  ExactAccumulator sum;
  bool invalid = false;
  if (from_zero) sum.add(accumulator_, 0);
  for (std::int64_t k = 0; mutant_is_on(Mutant::exact_terms_rounded) && k < range.count; ++k) {
    sum.add(accumulator_, rounded_product(range.at(k)).bits);
    if (k + 1 == range.count) return finish(sum, invalid);
  }
  for (std::int64_t k = 0; k < range.count; ++k) invalid |= accumulate(sum, range.at(k));
  return finish(sum, invalid);
}

SumOps::Value SumOps::unit(const OrderRange& range, const OrderItem&) {
  if (!unit_) return zero();  // parse_order() accepts no such order
  std::vector<Bits> x;
  std::vector<Bits> y;
  x.reserve(static_cast<std::size_t>(range.count));
  y.reserve(static_cast<std::size_t>(range.count));
  for (std::int64_t k = 0; k < range.count; ++k) {
    x.push_back(a(range.at(k)));
    y.push_back(b(range.at(k)));
  }
  return from(unit_->output, unit_dot(*unit_, {.a = x, .b = y}));
}

SumOps::Value SumOps::from(const Format& format, Bits code) {
  return {softfloat::convert(accumulator_, format, code).bits};
}

SumOps::Value SumOps::round_to(const Value& total, const Format& format) {
  const Value sum = total.term >= 0 ? rounded_product(total.term) : total;
  const Value rounded = note(softfloat::convert(format, accumulator_, sum.bits, mode_));
  return from(format, rounded.bits);
}

Rounded SumOps::finish(const Value& total) {
  const Value result = total.term >= 0 ? rounded_product(total.term) : total;
  return {result.bits, flags_};
}

SumOps::Value SumOps::note(const Rounded& rounded) {
  flags_ |= rounded.flags;
  return {rounded.bits};
}

SumOps::Value SumOps::not_a_number(bool invalid) {
  Rounded result = softfloat::detail::nan_result(accumulator_);
  result.flags.invalid |= invalid;
  return note(result);
}

SumOps::Value SumOps::rounded_product(std::int64_t i) {
  const ExactProduct product = multiply(input_, a(i), b(i), mode_);
  if (product.value.kind == Class::nan) return not_a_number(product.invalid);
  if (product.value.kind == Class::infinity) {
    return note(softfloat::detail::infinite_result(accumulator_, product.value.negative, mode_));
  }
  return note(softfloat::round_pack(accumulator_, product.value, mode_));
}

/// total + product i, rounded once: fma with factors and addend of different formats.
SumOps::Value SumOps::multiply_add(const Value& total, std::int64_t i) {
  const ExactProduct product = multiply(input_, a(i), b(i), mode_);
  const Exact x = product.value;
  const Exact y = softfloat::unpack<uint128>(accumulator_, total.bits, mode_.subnormals);
  if (x.kind == Class::nan || y.kind == Class::nan) return not_a_number(product.invalid);
  if (x.kind == Class::infinity || y.kind == Class::infinity) {
    if (x.kind == y.kind && x.negative != y.negative) return not_a_number(true);
    const bool negative = x.kind == Class::infinity ? x.negative : y.negative;
    return note(softfloat::detail::infinite_result(accumulator_, negative, mode_));
  }
  return note(softfloat::round_pack(accumulator_,
                                    softfloat::detail::add_exact(x, y, mode_.rounding), mode_));
}

/// Adds one product; true where an operand is a signaling NaN.
bool SumOps::accumulate(ExactAccumulator& sum, std::int64_t i) const {
  sum.add_product(input_, read(a(i)), input_, read(b(i)));
  return softfloat::is_signaling_nan(input_, a(i)) || softfloat::is_signaling_nan(input_, b(i));
}

SumOps::Value SumOps::finish(const ExactAccumulator& sum, bool invalid) {
  Rounded result = sum.round(accumulator_, mode_);
  result.flags.invalid |= invalid;
  return note(result);
}

/// An operand as the subnormal policy sees it.
Bits SumOps::read(Bits code) const {
  const bool flush = mode_.subnormals == softfloat::Subnormals::flush_inputs ||
                     mode_.subnormals == softfloat::Subnormals::flush_both;
  return flush && softfloat::is_subnormal(input_, code) ? code & input_.sign_bit() : code;
}

}  // namespace kvsim
