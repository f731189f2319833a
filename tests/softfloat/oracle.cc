// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/softfloat/oracle.h"

#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {
namespace {

constexpr int kExtraBits = 34;  // 32 for stochastic rounding, one each for half and safety

}  // namespace

Operand decode(const Format& format, Bits bits, bool flush) {
  const Limits l = limits(format);
  Operand o;
  o.negative = (bits & l.sign) != 0;
  const int trailing = format.precision - 1;
  const Bits magnitude = bits & ~l.sign;
  const auto field = static_cast<int>(magnitude >> trailing);
  o.significand = magnitude & ((Bits{1} << trailing) - 1);
  switch (format.specials) {
    case Specials::ieee:
      if (field == (1 << format.exponent_bits) - 1) {
        o.kind = o.significand == 0 ? Kind::infinite : Kind::nan;
        o.signaling = o.kind == Kind::nan && (o.significand >> (trailing - 1)) == 0;
        return o;
      }
      break;
    case Specials::nan_only:
    case Specials::exponent_only:
      if (magnitude == l.nan) o.kind = Kind::nan;
      break;
    case Specials::nan_is_negative_zero:
      if (bits == l.nan) o.kind = Kind::nan;
      break;
    case Specials::none:
      break;
  }
  if (o.kind == Kind::nan) return o;
  if (l.power_only) {
    o.significand = 1;
    o.exponent = field - format.bias;
    o.kind = Kind::finite;
    return o;
  }
  if (field != 0) o.significand += Bits{1} << trailing;
  o.exponent = std::max(field, 1) - format.bias - trailing;
  o.subnormal = field == 0 && o.significand != 0;
  o.kind = o.significand == 0 || (flush && o.subnormal) ? Kind::zero : Kind::finite;
  return o;
}

Exact exact_value(const Operand& operand) {
  Exact x;
  x.kind = operand.kind;
  x.negative = operand.negative;
  x.invalid = operand.signaling;
  if (operand.kind == Kind::finite) {
    x.significand = operand.significand;
    x.exponent = operand.exponent;
  }
  return x;
}

Oracle::Oracle() {
  mpfr_set_emin(mpfr_get_emin_min());
  mpfr_set_emax(mpfr_get_emax_max());
  mpfr_inits2(64, a_, b_, c_, result_, static_cast<mpfr_ptr>(nullptr));
}

Oracle::~Oracle() { mpfr_clears(a_, b_, c_, result_, static_cast<mpfr_ptr>(nullptr)); }

void Oracle::load(mpfr_ptr target, const Operand& operand) {
  const int sign = operand.negative ? -1 : 1;
  switch (operand.kind) {
    case Kind::zero:
      mpfr_set_zero(target, sign);
      break;
    case Kind::infinite:
      mpfr_set_inf(target, sign);
      break;
    case Kind::nan:
      mpfr_set_nan(target);
      break;
    case Kind::finite:
      mpfr_set_ui_2exp(target, operand.significand, operand.exponent, MPFR_RNDZ);
      if (operand.negative) mpfr_neg(target, target, MPFR_RNDZ);
      break;
  }
}

Exact Oracle::unload(bool inexact) const {
  Exact x;
  x.negative = mpfr_signbit(result_) != 0;
  x.division_by_zero = mpfr_divby0_p() != 0;
  if (mpfr_nan_p(result_) != 0) {
    x.kind = Kind::nan;
    x.negative = false;
  } else if (mpfr_inf_p(result_) != 0) {
    x.kind = Kind::infinite;
  } else if (mpfr_zero_p(result_) != 0) {
    x.kind = Kind::zero;
  } else {
    // MPFR keeps the significand as a fraction in [1/2, 1), left-aligned in its limbs.
    x.kind = Kind::finite;
    x.sticky = inexact;
    const auto* limb = static_cast<const mp_limb_t*>(mpfr_custom_get_significand(result_));
    const bool two = mpfr_get_prec(result_) > 64;
    x.significand = two ? (static_cast<Wide>(limb[1]) << 64) | limb[0] : Wide{limb[0]};
    x.exponent = static_cast<int>(mpfr_get_exp(result_)) - (two ? 128 : 64);
    const int spare = (two ? 128 : 64) - static_cast<int>(mpfr_get_prec(result_));
    x.significand >>= spare;
    x.exponent += spare;
  }
  return x;
}

Exact Oracle::compute(Op op, const Format& to, const Format& from, Bits a, Bits b, Bits c,
                      bool flush) {
  const Operand x = decode(from, a, flush);
  const int count = operand_count(op);
  const Operand y = count > 1 ? decode(from, b, flush) : Operand{};
  const Operand z = count > 2 ? decode(from, c, flush) : Operand{};
  load(a_, x);
  if (count > 1) load(b_, y);
  if (count > 2) load(c_, z);
  if (mpfr_get_prec(result_) != to.precision + kExtraBits) {
    mpfr_set_prec(result_, to.precision + kExtraBits);
  }
  mpfr_clear_divby0();
  int ternary = 0;
  switch (op) {
    case Op::add:
      ternary = mpfr_add(result_, a_, b_, MPFR_RNDZ);
      break;
    case Op::sub:
      ternary = mpfr_sub(result_, a_, b_, MPFR_RNDZ);
      break;
    case Op::mul:
      ternary = mpfr_mul(result_, a_, b_, MPFR_RNDZ);
      break;
    case Op::div:
      ternary = mpfr_div(result_, a_, b_, MPFR_RNDZ);
      break;
    case Op::fma:
      ternary = mpfr_fma(result_, a_, b_, c_, MPFR_RNDZ);
      break;
    case Op::sqrt:
      ternary = mpfr_sqrt(result_, a_, MPFR_RNDZ);
      break;
    case Op::convert:
    case Op::round_to_integral:
      ternary = mpfr_set(result_, a_, MPFR_RNDZ);
      break;
  }
  Exact r = unload(ternary != 0);
  const bool nan_operand = x.kind == Kind::nan || y.kind == Kind::nan || z.kind == Kind::nan;
  const auto zero_times_infinity = [](const Operand& u, const Operand& v) {
    return u.kind == Kind::zero && v.kind == Kind::infinite;
  };
  r.invalid = x.signaling || y.signaling || z.signaling || (r.kind == Kind::nan && !nan_operand) ||
              (op == Op::fma && (zero_times_infinity(x, y) || zero_times_infinity(y, x)));
  if (r.kind == Kind::zero && (op == Op::add || op == Op::sub || op == Op::fma)) {
    // Only a sum of zeros of one sign keeps that sign; every other zero follows the direction.
    const Operand& last = op == Op::fma ? z : y;
    const bool first_negative = op == Op::fma ? x.negative != y.negative : x.negative;
    const bool last_negative = op == Op::sub ? !last.negative : last.negative;
    const bool zeros = last.kind == Kind::zero && first_negative == last_negative;
    r.cancelled = !zeros;
    r.negative = zeros && first_negative;
  }
  return r;
}

Exact exact_value(mpz_srcptr sum, long exponent) {
  Exact x;
  const int sign = mpz_sgn(sum);
  if (sign == 0) {
    x.cancelled = true;
    return x;
  }
  x.kind = Kind::finite;
  x.negative = sign < 0;
  mpz_t top;
  mpz_init(top);
  mpz_abs(top, sum);
  const auto size = static_cast<long>(mpz_sizeinbase(top, 2));
  const long drop = std::max(size - 120, 0L);
  x.sticky = drop > 0 && mpz_scan1(top, 0) < static_cast<mp_bitcnt_t>(drop);
  mpz_tdiv_q_2exp(top, top, static_cast<mp_bitcnt_t>(drop));
  x.exponent = static_cast<int>(exponent + drop);
  x.significand = (static_cast<Wide>(mpz_getlimbn(top, 1)) << 64) | mpz_getlimbn(top, 0);
  mpz_clear(top);
  return x;
}

Rounded expected(Oracle& oracle, Op op, const Format& to, const Format& from, Bits a, Bits b,
                 Bits c, const Mode& mode) {
  const bool flush = flushes_inputs(mode);
  if (op == Op::round_to_integral) {
    return round_to_integral(exact_value(decode(from, a, flush)), to, mode);
  }
  return round(oracle.compute(op, to, from, a, b, c, flush), to, mode);
}

}  // namespace kvsim::oracle
