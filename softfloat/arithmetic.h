// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "softfloat/exact.h"
#include "softfloat/format.h"
#include "softfloat/mutants.h"
#include "softfloat/operations.h"
#include "softfloat/round.h"
#include "softfloat/rounding.h"

/// Arithmetic on encodings, IEEE 754-2019 clause 5, in any Format of at most 53 bits of precision.
/// Every operation is round_pack(format, exact operation on unpacked operands, mode). The rules for
/// NaN, signed zero, infinity without an infinity, and e8m0 stand in docs/numerics.md.
namespace kvsim::softfloat {

[[nodiscard]] constexpr bool is_nan(const Format& f, Bits a) {
  return unpack<std::uint64_t>(f, a).kind == Class::nan;
}
[[nodiscard]] constexpr bool is_infinite(const Format& f, Bits a) {
  return unpack<std::uint64_t>(f, a).kind == Class::infinity;
}
[[nodiscard]] constexpr bool is_zero(const Format& f, Bits a) {
  return unpack<std::uint64_t>(f, a).kind == Class::zero;
}
/// Zero, subnormal or normal: neither infinite nor NaN.
[[nodiscard]] constexpr bool is_finite(const Format& f, Bits a) {
  return !is_nan(f, a) && !is_infinite(f, a);
}
[[nodiscard]] constexpr bool is_subnormal(const Format& f, Bits a) {
  const Bits magnitude = a & f.magnitude_mask();
  return f.has_zero() && magnitude != 0 && (magnitude >> f.trailing_bits()) == 0;
}
/// The sign bit; for the NaN of a "fnuz" format it is set too.
[[nodiscard]] constexpr bool is_negative(const Format& f, Bits a) {
  return (a & f.sign_bit()) != 0;
}
/// −a without rounding or flags. NaN stays as it is, and so does the only zero of "fnuz" formats.
[[nodiscard]] constexpr Bits negate(const Format& f, Bits a) {
  if (is_nan(f, a) || (!f.has_negative_zero() && is_zero(f, a))) return a;
  return a ^ f.sign_bit();
}
/// |a| without rounding or flags. NaN stays as it is.
[[nodiscard]] constexpr Bits abs(const Format& f, Bits a) {
  return is_nan(f, a) ? a : a & f.magnitude_mask();
}

namespace detail {

[[nodiscard]] constexpr Rounded invalid_result(const Format& f) {
  Rounded result = nan_result(f);
  result.flags.invalid = true;
  return result;
}

/// NaN from operands, of which at least one is NaN: canonical, invalid where one is signaling.
[[nodiscard]] constexpr Rounded nan_operand_result(const Format& f, bool signaling) {
  Rounded result = nan_result(f);
  result.flags.invalid |= signaling;
  return result;
}

template <Significand S>
[[nodiscard]] constexpr Rounded add(const Format& f, Bits a, Bits b, const Mode& mode) {
  const auto x = unpack<S>(f, a, mode.subnormals);
  const auto y = unpack<S>(f, b, mode.subnormals);
  if (x.kind == Class::nan || y.kind == Class::nan) {
    return nan_operand_result(f, is_signaling_nan(f, a) || is_signaling_nan(f, b));
  }
  if (x.kind == Class::infinity) {
    if (y.kind == Class::infinity && x.negative != y.negative) return invalid_result(f);
    return infinite_result(f, x.negative, mode);
  }
  if (y.kind == Class::infinity) return infinite_result(f, y.negative, mode);
  return round_pack(f, add_exact(x, y, mode.rounding), mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded mul(const Format& f, Bits a, Bits b, const Mode& mode) {
  const auto x = unpack<S>(f, a, mode.subnormals);
  const auto y = unpack<S>(f, b, mode.subnormals);
  if (x.kind == Class::nan || y.kind == Class::nan) {
    return nan_operand_result(f, is_signaling_nan(f, a) || is_signaling_nan(f, b));
  }
  if (x.kind == Class::infinity || y.kind == Class::infinity) {
    if (x.kind == Class::zero || y.kind == Class::zero) return invalid_result(f);
    return infinite_result(f, x.negative != y.negative, mode);
  }
  return round_pack(f, multiply_exact(x, y), mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded div(const Format& f, Bits a, Bits b, const Mode& mode) {
  const auto x = unpack<S>(f, a, mode.subnormals);
  const auto y = unpack<S>(f, b, mode.subnormals);
  const bool negative = x.negative != y.negative;
  if (x.kind == Class::nan || y.kind == Class::nan) {
    return nan_operand_result(f, is_signaling_nan(f, a) || is_signaling_nan(f, b));
  }
  if (x.kind == y.kind && (x.kind == Class::infinity || x.kind == Class::zero)) {
    return invalid_result(f);
  }
  if (x.kind == Class::infinity) return infinite_result(f, negative, mode);
  if (y.kind == Class::zero) {
    Rounded result = infinite_result(f, negative, mode);
    result.flags.division_by_zero = true;
    return result;
  }
  if (x.kind == Class::zero || y.kind == Class::infinity) return zero_result(f, negative);
  return round_pack(f, divide_exact(x, y), mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded sqrt(const Format& f, Bits a, const Mode& mode) {
  const auto x = unpack<S>(f, a, mode.subnormals);
  if (x.kind == Class::nan) return nan_operand_result(f, is_signaling_nan(f, a));
  if (x.kind == Class::zero) return zero_result(f, x.negative);
  if (x.negative) return invalid_result(f);
  if (x.kind == Class::infinity) return infinite_result(f, false, mode);
  return round_pack(f, square_root_exact(x), mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded fma(const Format& f, Bits a, Bits b, Bits c, const Mode& mode) {
  const auto x = unpack<S>(f, a, mode.subnormals);
  const auto y = unpack<S>(f, b, mode.subnormals);
  const auto z = unpack<S>(f, c, mode.subnormals);
  const bool invalid_product = (x.kind == Class::infinity && y.kind == Class::zero) ||
                               (x.kind == Class::zero && y.kind == Class::infinity);
  if (x.kind == Class::nan || y.kind == Class::nan || z.kind == Class::nan) {
    const bool signaling =
        is_signaling_nan(f, a) || is_signaling_nan(f, b) || is_signaling_nan(f, c);
    return nan_operand_result(f, signaling || invalid_product);
  }
  if (invalid_product) return invalid_result(f);
  const bool negative = x.negative != y.negative;
  if (x.kind == Class::infinity || y.kind == Class::infinity) {
    if (z.kind == Class::infinity && z.negative != negative) return invalid_result(f);
    return infinite_result(f, negative, mode);
  }
  if (z.kind == Class::infinity) return infinite_result(f, z.negative, mode);
  auto product = multiply_exact(x, y);
  if (mutant_is_on(Mutant::product_rounded_in_fma)) {
    product = unpack<S>(f, round_pack(f, product, mode).bits);
  }
  return round_pack(f, add_exact(product, z, mode.rounding), mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded convert(const Format& to, const Format& from, Bits a,
                                        const Mode& mode) {
  const auto x = unpack<S>(from, a, mode.subnormals);
  if (x.kind == Class::nan) return nan_operand_result(to, is_signaling_nan(from, a));
  return round_pack(to, x, mode);
}

template <Significand S>
[[nodiscard]] constexpr Rounded round_to_integral(const Format& f, Bits a, const Mode& mode) {
  using Value = BasicExact<S>;
  const auto x = unpack<S>(f, a, mode.subnormals);
  if (x.kind == Class::nan) return nan_operand_result(f, is_signaling_nan(f, a));
  if (x.kind != Class::finite || x.exponent >= f.trailing_bits()) return round_pack(f, x, mode);
  const Cut<S> integer =
      cut(x.significand, Value::top - x.exponent, x.negative, mode.rounding, mode.random);
  Rounded result = round_pack(f, make_exact(x.negative, integer.kept, 0), mode);
  result.flags.inexact |= integer.inexact;
  return result;
}

/// Codes as integers in the order of the numbers that they stand for; both zeros give 0.
[[nodiscard]] constexpr std::int64_t order_key(const Format& f, Bits a) {
  const auto magnitude = static_cast<std::int64_t>(a & f.magnitude_mask());
  return is_negative(f, a) ? -magnitude : magnitude;
}

[[nodiscard]] constexpr bool uses_narrow(const Format& f) { return f.precision <= 24; }

}  // namespace detail

/// a + b.
[[nodiscard]] constexpr Rounded add(const Format& f, Bits a, Bits b, const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::add<std::uint64_t>(f, a, b, mode)
                                : detail::add<uint128>(f, a, b, mode);
}

/// a − b: a + (−b), a NaN in b included.
[[nodiscard]] constexpr Rounded sub(const Format& f, Bits a, Bits b, const Mode& mode = {}) {
  if (is_nan(f, b)) return add(f, a, b, mode);
  if (!f.has_negative_zero() && is_zero(f, b)) return add(f, a, b, mode);
  return add(f, a, b ^ f.sign_bit(), mode);
}

/// a × b.
[[nodiscard]] constexpr Rounded mul(const Format& f, Bits a, Bits b, const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::mul<std::uint64_t>(f, a, b, mode)
                                : detail::mul<uint128>(f, a, b, mode);
}

/// a ÷ b. A finite nonzero a over zero raises division_by_zero.
[[nodiscard]] constexpr Rounded div(const Format& f, Bits a, Bits b, const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::div<std::uint64_t>(f, a, b, mode)
                                : detail::div<uint128>(f, a, b, mode);
}

/// √a; √−0 is −0.
[[nodiscard]] constexpr Rounded sqrt(const Format& f, Bits a, const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::sqrt<std::uint64_t>(f, a, mode)
                                : detail::sqrt<uint128>(f, a, mode);
}

/// a × b + c with one rounding. 0 × infinity raises invalid even where c is NaN.
[[nodiscard]] constexpr Rounded fma(const Format& f, Bits a, Bits b, Bits c,
                                    const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::fma<std::uint64_t>(f, a, b, c, mode)
                                : detail::fma<uint128>(f, a, b, c, mode);
}

/// The value of `a` in format `from`, rounded to format `to`. A signaling NaN raises invalid.
[[nodiscard]] constexpr Rounded convert(const Format& to, const Format& from, Bits a,
                                        const Mode& mode = {}) {
  return detail::uses_narrow(to) ? detail::convert<std::uint64_t>(to, from, a, mode)
                                 : detail::convert<uint128>(to, from, a, mode);
}

/// `a` rounded to an integer of its format; raises inexact (roundToIntegralExact). Where that
/// integer exceeds the largest finite number (7.5 in e2m3), the overflow policy applies.
[[nodiscard]] constexpr Rounded round_to_integral(const Format& f, Bits a, const Mode& mode = {}) {
  return detail::uses_narrow(f) ? detail::round_to_integral<std::uint64_t>(f, a, mode)
                                : detail::round_to_integral<uint128>(f, a, mode);
}

/// How two numbers compare; unordered where one of them is NaN. −0 equals +0.
enum class Ordering : std::uint8_t { less, equal, greater, unordered };

struct Compared {
  Ordering ordering = Ordering::unordered;
  Flags flags;
};

/// Quiet comparison: invalid only for a signaling NaN.
[[nodiscard]] constexpr Compared compare(const Format& f, Bits a, Bits b) {
  if (is_nan(f, a) || is_nan(f, b)) {
    return {Ordering::unordered, {.invalid = is_signaling_nan(f, a) || is_signaling_nan(f, b)}};
  }
  const std::int64_t x = detail::order_key(f, a);
  const std::int64_t y = detail::order_key(f, b);
  return {x < y ? Ordering::less : x > y ? Ordering::greater : Ordering::equal, {}};
}

/// Signaling comparison: invalid for any NaN.
[[nodiscard]] constexpr Compared compare_signaling(const Format& f, Bits a, Bits b) {
  Compared result = compare(f, a, b);
  result.flags.invalid = result.ordering == Ordering::unordered;
  return result;
}

namespace detail {

/// The smaller (or larger) of two numbers; −0 counts as smaller than +0.
[[nodiscard]] constexpr Bits select(const Format& f, Bits a, Bits b, bool want_larger) {
  const std::int64_t x = order_key(f, a);
  const std::int64_t y = order_key(f, b);
  const bool a_is_smaller = x != y ? x < y : is_negative(f, a);
  return a_is_smaller != want_larger ? a : b;
}

[[nodiscard]] constexpr Rounded select_or_nan(const Format& f, Bits a, Bits b, bool want_larger) {
  if (is_nan(f, a) || is_nan(f, b)) {
    return nan_operand_result(f, is_signaling_nan(f, a) || is_signaling_nan(f, b));
  }
  return {select(f, a, b, want_larger), {}};
}

[[nodiscard]] constexpr Rounded select_number(const Format& f, Bits a, Bits b, bool want_larger) {
  if (!is_nan(f, a) && !is_nan(f, b)) return {select(f, a, b, want_larger), {}};
  const Flags flags{.invalid = is_signaling_nan(f, a) || is_signaling_nan(f, b)};
  if (!is_nan(f, a)) return {a, flags};
  if (!is_nan(f, b)) return {b, flags};
  return {f.canonical_nan(), flags};
}

}  // namespace detail

/// minimum and maximum of IEEE 754-2019 clause 9.6: NaN if either operand is NaN; −0 < +0.
[[nodiscard]] constexpr Rounded minimum(const Format& f, Bits a, Bits b) {
  return detail::select_or_nan(f, a, b, false);
}
[[nodiscard]] constexpr Rounded maximum(const Format& f, Bits a, Bits b) {
  return detail::select_or_nan(f, a, b, true);
}
/// minimumNumber and maximumNumber: the number where one operand is NaN; a signaling NaN raises
/// invalid.
[[nodiscard]] constexpr Rounded minimum_number(const Format& f, Bits a, Bits b) {
  return detail::select_number(f, a, b, false);
}
[[nodiscard]] constexpr Rounded maximum_number(const Format& f, Bits a, Bits b) {
  return detail::select_number(f, a, b, true);
}

/// The least number greater than `a` (IEEE 754-2019 clause 5.3.1). The largest number of a format
/// without infinity is its own successor, and so is +infinity.
[[nodiscard]] constexpr Rounded next_up(const Format& f, Bits a) {
  if (is_nan(f, a)) return detail::nan_operand_result(f, is_signaling_nan(f, a));
  const Bits last = f.has_infinity() ? f.infinity() : f.max_finite();
  if (a == last) return {a, {}};
  if (!is_negative(f, a)) return {a + 1, {}};
  if ((a & f.magnitude_mask()) == 0) return {1, {}};  // −0
  const Bits result = a - 1;
  const bool is_missing_zero = !f.has_negative_zero() && result == f.sign_bit();
  return {is_missing_zero ? Bits{0} : result, {}};
}

/// The greatest number less than `a`; mirror image of next_up.
[[nodiscard]] constexpr Rounded next_down(const Format& f, Bits a) {
  if (is_nan(f, a)) return detail::nan_operand_result(f, is_signaling_nan(f, a));
  if (!f.has_sign) return {a == 0 ? a : a - 1, {}};
  const Rounded up = next_up(f, negate(f, a));
  return {negate(f, up.bits), up.flags};
}

}  // namespace kvsim::softfloat
