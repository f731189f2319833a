// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/order.h"
#include "sim/order_names.h"
#include "sim/order_walk.h"
#include "softfloat/arithmetic.h"
#include "softfloat/exact.h"
#include "softfloat/exact_sum.h"
#include "softfloat/operations.h"
#include "softfloat/round.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Class;
using softfloat::Exact;
using softfloat::ExactAccumulator;
using softfloat::Flags;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;
using softfloat::uint128;

constexpr std::array<std::string_view, 3> product_names = {"rounded", "fused", "exact"};

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

/// Ops of walk() on softfloat.
class SumOps {
 public:
  /// A partial sum: a code of the accumulator format, or (Product::exact only) one product that is
  /// not rounded yet.
  struct Value {
    Bits bits = 0;
    std::int64_t term = -1;  // ≥ 0: the exact product of this term
  };

  SumOps(Product product, const Format& input, const Format& accumulator, std::span<const Bits> a,
         std::span<const Bits> b, const Mode& mode)
      : product_(product), input_(input), accumulator_(accumulator), a_(a), b_(b), mode_(mode) {}

  Value zero() const { return {}; }

  Value first(std::int64_t i) {
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

  Value add_term(const Value& total, std::int64_t i) {
    if (product_ == Product::rounded) return add(total, rounded_product(i));
    if (total.term < 0) return multiply_add(total, i);
    ExactAccumulator sum;  // the exact sum of two products may need more bits than an Exact has
    bool invalid = accumulate(sum, total.term);
    invalid |= accumulate(sum, i);
    return finish(sum, invalid);
  }

  Value add(const Value& left, const Value& right) {
    if (left.term >= 0 && right.term >= 0) return add_term(left, right.term);
    if (left.term >= 0) return multiply_add(right, left.term);
    if (right.term >= 0) return multiply_add(left, right.term);
    return note(softfloat::add(accumulator_, left.bits, right.bits, mode_));
  }

  Value exact(const OrderRange& range, bool from_zero) {
    ExactAccumulator sum;
    bool invalid = false;
    if (from_zero) sum.add(accumulator_, 0);
    for (std::int64_t k = 0; k < range.count; ++k) invalid |= accumulate(sum, range.at(k));
    return finish(sum, invalid);
  }

  Rounded finish(const Value& total) {
    const Value result = total.term >= 0 ? rounded_product(total.term) : total;
    return {result.bits, flags_};
  }

 private:
  Bits a(std::int64_t i) const { return a_[static_cast<std::size_t>(i)]; }
  Bits b(std::int64_t i) const { return b_[static_cast<std::size_t>(i)]; }

  Value note(const Rounded& rounded) {
    flags_ |= rounded.flags;
    return {rounded.bits};
  }

  Value not_a_number(bool invalid) {
    Rounded result = softfloat::detail::nan_result(accumulator_);
    result.flags.invalid |= invalid;
    return note(result);
  }

  Value rounded_product(std::int64_t i) {
    const ExactProduct product = multiply(input_, a(i), b(i), mode_);
    if (product.value.kind == Class::nan) return not_a_number(product.invalid);
    if (product.value.kind == Class::infinity) {
      return note(softfloat::detail::infinite_result(accumulator_, product.value.negative, mode_));
    }
    return note(softfloat::round_pack(accumulator_, product.value, mode_));
  }

  /// total + product i, rounded once: fma with factors and addend of different formats.
  Value multiply_add(const Value& total, std::int64_t i) {
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
  bool accumulate(ExactAccumulator& sum, std::int64_t i) const {
    sum.add_product(input_, read(a(i)), input_, read(b(i)));
    return softfloat::is_signaling_nan(input_, a(i)) || softfloat::is_signaling_nan(input_, b(i));
  }

  Value finish(const ExactAccumulator& sum, bool invalid) {
    Rounded result = sum.round(accumulator_, mode_);
    result.flags.invalid |= invalid;
    return note(result);
  }

  /// An operand as the subnormal policy sees it.
  Bits read(Bits code) const {
    const bool flush = mode_.subnormals == softfloat::Subnormals::flush_inputs ||
                       mode_.subnormals == softfloat::Subnormals::flush_both;
    return flush && softfloat::is_subnormal(input_, code) ? code & input_.sign_bit() : code;
  }

  Product product_;
  const Format& input_;
  const Format& accumulator_;
  std::span<const Bits> a_;
  std::span<const Bits> b_;
  const Mode& mode_;
  Flags flags_;
};

}  // namespace

std::string_view to_string(Product product) {
  return product_names[static_cast<std::size_t>(product)];
}

Result<Product> parse_product(std::string_view text) {
  for (std::size_t i = 0; i < product_names.size(); ++i) {
    if (product_names[i] == text) return static_cast<Product>(i);
  }
  const std::string_view near = softfloat::nearest(text, product_names);
  return Error{ErrorKind::usage,
               fmt::format("product rule {}; accepted: {}{}", order_names::quoted(text),
                           fmt::join(product_names, ", "),
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

Rounded sum_products(const Order& order, Product product, const Format& input,
                     const Format& accumulator, std::span<const Bits> a, std::span<const Bits> b,
                     const Mode& mode) {
  SumOps ops(product, input, accumulator, a, b, mode);
  const auto n = static_cast<std::int64_t>(std::min(a.size(), b.size()));
  const SumOps::Value total = walk(order, n, ops);
  return ops.finish(total);
}

}  // namespace kvsim
