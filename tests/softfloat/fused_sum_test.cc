// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// fused_sum against its definition in GMP integers, on random terms with specials and zeros.

#include "softfloat/fused_sum.h"

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/operands.h"
#include "tests/softfloat/sum_oracle.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

Bits from_value(float x) { return std::bit_cast<std::uint32_t>(x); }

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
