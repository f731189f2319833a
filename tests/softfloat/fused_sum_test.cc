// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// fused_sum against its definition in GMP integers, on random terms with specials and zeros.

#include "softfloat/fused_sum.h"

#include <gmp.h>
#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/operands.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

/// A term by its definition: significand × 2^unit, aligned by `exponent`.
struct Term {
  Kind kind = Kind::zero;
  bool negative = false;
  int exponent = 0;
  long unit = 0;
  std::uint64_t significand = 0;
};

Bits from_value(float x) { return std::bit_cast<std::uint32_t>(x); }

Term term(const Format& f, Bits bits) {
  const Operand o = decode(f, bits);
  Term t{o.kind, o.negative, 0, o.exponent, o.significand};
  if (o.kind == Kind::finite) {
    const int log2 = o.exponent + bit_length(o.significand) - 1;
    t.exponent = std::max(log2, limits(f).emin);
  }
  return t;
}

Term product(const Term& a, const Term& b) {
  Term t;
  t.negative = a.negative != b.negative;
  const auto either = [&](Kind kind) { return a.kind == kind || b.kind == kind; };
  if (either(Kind::nan) || (either(Kind::infinite) && either(Kind::zero))) {
    t.kind = Kind::nan;
  } else if (either(Kind::infinite)) {
    t.kind = Kind::infinite;
  } else if (!either(Kind::zero)) {
    t = {Kind::finite, t.negative, a.exponent + b.exponent, a.unit + b.unit,
         a.significand * b.significand};
  }
  return t;
}

Rounded defined_sum(const std::vector<Term>& terms, const FusedSum& sum) {
  Exact result;
  bool all_negative_zero = !terms.empty(), any = false, plus = false, minus = false, nan = false;
  int largest = 0;
  for (const Term& t : terms) {
    nan = nan || t.kind == Kind::nan;
    if (t.kind == Kind::infinite) (t.negative ? minus : plus) = true;
    all_negative_zero = all_negative_zero && t.kind == Kind::zero && t.negative;
    if (t.kind == Kind::zero && sum.zero_exponent == FusedSum::no_zero_exponent) continue;
    const int exponent = t.kind == Kind::zero ? sum.zero_exponent : t.exponent;
    largest = any ? std::max(largest, exponent) : exponent;
    any = true;
  }
  if (nan || (plus && minus)) {
    result.kind = Kind::nan;
    result.invalid = !nan;
  } else if (plus || minus) {
    result.kind = Kind::infinite;
    result.negative = minus;
  } else {
    const long unit = static_cast<long>(largest) - sum.fraction_bits;
    mpz_t total, one;
    mpz_inits(total, one, static_cast<mpz_ptr>(nullptr));
    for (const Term& t : terms) {
      if (t.kind == Kind::zero) continue;
      mpz_set_ui(one, t.significand);
      if (t.unit >= unit) {
        mpz_mul_2exp(one, one, static_cast<mp_bitcnt_t>(t.unit - unit));
      } else {
        mpz_tdiv_q_2exp(one, one, static_cast<mp_bitcnt_t>(unit - t.unit));
      }
      if (t.negative) mpz_neg(one, one);
      mpz_add(total, total, one);
    }
    result = exact_value(total, unit);
    if (result.kind == Kind::zero) {
      result.cancelled = false;
      result.negative = all_negative_zero;
    }
    mpz_clears(total, one, static_cast<mpz_ptr>(nullptr));
  }
  return round(result, sum.output, sum.mode);
}

TEST(FusedSum, FollowsItsDefinition) {
  constexpr Format kInputs[] = {binary16, bfloat16, tf32, e4m3, e5m2, e2m1, e4m3fnuz, binary32};
  constexpr Format kOutputs[] = {binary32, binary16, e8m13, bfloat16};
  std::vector<Mode> modes = rounding_modes();
  Mode unit;
  unit.rounding = Rounding::toward_zero;
  unit.overflow = Overflow::infinity;
  modes.push_back(unit);
  for (const Format& input : kInputs) {
    const RandomOperands factor(input);
    for (const Format& output : kOutputs) {
      const RandomOperands addend(output);
      for (std::uint64_t i = 0; i < 4000; ++i) {
        const std::uint64_t word = mix(i);
        FusedSum sum;
        sum.output = output;
        sum.fraction_bits = static_cast<int>(word % 61);
        // As in every matrix unit: an addend takes part, and a zero one lies below all others.
        const bool zero_exponent = (word >> 8) % 2 == 0;
        if (zero_exponent) {
          sum.zero_exponent = limits(output).emin - 1 - static_cast<int>((word >> 16) % 50);
        }
        sum.mode = modes[(word >> 24) % modes.size()];
        std::vector<FusedTerm> terms;
        std::vector<Term> defined;
        const std::uint64_t length = (word >> 32) % 33;
        const bool finite = (word >> 40) % 4 != 0, near_one = (word >> 42) % 2 == 0;
        const auto draw = [&](const RandomOperands& random, const Format& f,
                              std::uint64_t counter) {
          Bits bits = random(counter);
          if (near_one) {  // many terms that overlap and cancel
            bits = (bits & ~(limits(f).infinity)) |
                   ((static_cast<Bits>(f.bias) / 2 + counter % 3) << (f.precision - 1));
          }
          const Kind kind = decode(f, bits).kind;
          return finite && (kind == Kind::nan || kind == Kind::infinite) ? counter % 2 : bits;
        };
        for (std::uint64_t k = 0; k < length; ++k) {
          const Bits a = draw(factor, input, 128 * i + 2 * k);
          const Bits b = draw(factor, input, 128 * i + 2 * k + 1);
          terms.push_back(fused_product(input, a, input, b));
          defined.push_back(product(term(input, a), term(input, b)));
        }
        if (zero_exponent || (word >> 41) % 2 == 0) {
          const bool zero_addend = (word >> 43) % 4 == 0;
          const Bits c = zero_addend ? 0 : draw(addend, output, 128 * i + 127);
          terms.push_back(fused_term(output, c));
          defined.push_back(term(output, c));
        }
        const Rounded got = fused_sum(terms, sum), want = defined_sum(defined, sum);
        ASSERT_TRUE(got == want) << format_name(input) << " to " << format_name(output) << " case "
                                 << i << ", " << terms.size() << " terms, F " << sum.fraction_bits
                                 << ": got " << describe(output, got.bits) << ", want "
                                 << describe(output, want.bits);
      }
    }
  }
}

TEST(FusedSum, TruncatesTheTermsNotTheSum) {
  // 2^23 − 2^23 − 0.5 − 0.25 − 0.125 in fp16 products: MMA-Sim v2, table 8, gives 0 with F = 23
  // (V100), −0.5 with F = 24 (A100) and −0.75 with F = 25 (H100).
  const auto sum = [](int fraction_bits) {
    FusedSum parameters;
    parameters.fraction_bits = fraction_bits;
    const FusedTerm terms[] = {fused_term(binary32, from_value(0x1p23F)),
                               fused_product(binary16, 0xec00, binary16, 0x6800),
                               fused_product(binary16, 0xb800, binary16, 0x3c00),
                               fused_product(binary16, 0xb400, binary16, 0x3c00),
                               fused_product(binary16, 0xb000, binary16, 0x3c00)};
    return fused_sum(terms, parameters).bits;
  };
  EXPECT_EQ(sum(23), from_value(0.0F));
  EXPECT_EQ(sum(24), from_value(-0.5F));
  EXPECT_EQ(sum(25), from_value(-0.75F));
}

}  // namespace
}  // namespace kvsim::oracle
