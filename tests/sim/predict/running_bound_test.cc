// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/running_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/inputs.h"
#include "sim/philox.h"
#include "sim/sum.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

struct Products {
  std::vector<softfloat::Bits> a;
  std::vector<softfloat::Bits> b;
  std::vector<double> left;
  std::vector<double> right;
  long double sum = 0;  // of products of 22 bits: exact in 64 bits for these few terms
};

Products make_products(std::int64_t terms, std::uint64_t seed, bool one_sign) {
  Products products;
  for (std::int64_t i = 0; i < terms; ++i) {
    const auto code = [&](std::uint64_t stream) {
      double value = normal(seed, stream, static_cast<std::uint64_t>(i));
      if (one_sign) value = std::abs(value);
      return softfloat::convert(softfloat::binary16, softfloat::binary64,
                                softfloat::from_double(value))
          .bits;
    };
    products.a.push_back(code(0));
    products.b.push_back(code(1));
    products.left.push_back(softfloat::to_double(softfloat::binary16, products.a.back()));
    products.right.push_back(softfloat::to_double(softfloat::binary16, products.b.back()));
    products.sum += products.left.back() * products.right.back();
  }
  return products;
}

// Every error is within its bound, and where the unit truncates sums of one sign the bound is not
// far away.
TEST(RunningBound, HoldsForOrdersAndUnits) {
  for (const char* text :
       {"sequential", "pairwise", "lanes(32,1,join=butterfly)", "blocks(64)", "exact",
        "mma(h100.wgmma.f16.f32)", "mma(a100.mma.f16.f32)", "mma(v100.mma.f16.f32)",
        "mma(mi300.mfma.f16.f32)", "mma(mi300.mfma.f16.f32(final_rounding_down=no))",
        "blocks(64)/mma(mi300.mfma.f16.f32)", "blocks(128)/mma(h100.wgmma.f16.f32)",
        "split(4,multiple=64)/mma(a100.mma.f16.f32)",
        "split(4,partials=bf16,running=bf16)/mma(b200.tcgen05.f16.f32)"}) {
    const Order order = parse_order(text).value();
    const SumTree tree = build_sum_tree(order, 1000).value();
    double closest = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Products products = make_products(1000, seed, seed % 2 == 1);
      const double computed = softfloat::to_double(
          softfloat::binary32, sum_products(order, Product::rounded, softfloat::binary16,
                                            softfloat::binary32, products.a, products.b)
                                   .bits);
      const auto error = static_cast<double>(std::abs(computed - products.sum));
      const std::optional<double> bound = running_bound(
          tree, softfloat::binary16, softfloat::binary32, products.left, products.right);
      ASSERT_TRUE(bound) << text;
      EXPECT_LE(error, *bound) << text << ' ' << seed;
      closest = std::max(closest, error / *bound);
    }
    EXPECT_GT(closest, 0.01) << text;
  }
}

// A unit for tf32 drops 13 bits of binary32 operands; half the numbers have none there.
TEST(RunningBound, CountsTheBitsThatAUnitDoesNotRead) {
  const SumTree tree = build_sum_tree(parse_order("mma(h100.mma.tf32.f32)").value(), 64).value();
  const Order order = parse_order("mma(h100.mma.tf32.f32)").value();
  for (const bool narrow : {false, true}) {
    double largest = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Products products;
      for (std::uint64_t i = 0; i < 64; ++i) {
        for (const std::uint64_t stream : {0U, 1U}) {
          softfloat::Bits code =
              softfloat::convert(softfloat::binary32, softfloat::binary64,
                                 softfloat::from_double(std::abs(normal(seed, stream, i))))
                  .bits;
          if (narrow) code &= ~softfloat::Bits{0x1fff};
          (stream == 0 ? products.a : products.b).push_back(code);
          (stream == 0 ? products.left : products.right)
              .push_back(softfloat::to_double(softfloat::binary32, code));
        }
        products.sum += products.left.back() * products.right.back();
      }
      const double computed = softfloat::to_double(
          softfloat::binary32, sum_products(order, Product::rounded, softfloat::binary32,
                                            softfloat::binary32, products.a, products.b)
                                   .bits);
      const auto error = static_cast<double>(std::abs(computed - products.sum));
      const auto bound = running_bound(tree, softfloat::binary32, softfloat::binary32,
                                       products.left, products.right);
      ASSERT_TRUE(bound);
      EXPECT_LE(error, *bound) << seed;
      largest = std::max(largest, *bound);
    }
    // What is dropped is about 2^-11 of 64 terms of size 0.6.
    EXPECT_GT(largest, narrow ? 0 : 0x1p-7);
    EXPECT_LT(largest, narrow ? 0x1p-14 : 0x1p-4);
  }
}

/// Numbers of 4 bits whose exponents lie up to 15 apart, where terms that cancel leave what was cut
/// off: pairs of opposite terms around small ones, small negative terms beneath a large sum.
Products make_hostile_products(const softfloat::Format& format, std::int64_t terms,
                               std::uint64_t seed) {
  Products products;
  const auto add = [&](double a, double b) {
    for (const auto& [value, codes, numbers] : {std::tuple{a, &products.a, &products.left},
                                                std::tuple{b, &products.b, &products.right}}) {
      codes->push_back(
          softfloat::convert(format, softfloat::binary64, softfloat::from_double(value)).bits);
      numbers->push_back(softfloat::to_double(format, codes->back()));
    }
    products.sum += products.left.back() * products.right.back();
  };
  std::vector<double> open;  // terms whose opposites follow, a block or more later
  for (std::int64_t i = 0; i < terms; ++i) {
    const std::uint64_t bits = philox_bits(seed, 9, static_cast<std::uint64_t>(i));
    const double small = std::ldexp(-static_cast<double>(8 + bits % 8), -9);
    const double large = std::ldexp(static_cast<double>(8 + bits / 8 % 8), 3);
    if (seed % 3 == 0) {  // one large sum, everything else below it and negative
      add(i == 0 ? large : small, i == 0 ? large : -small);
    } else if (bits / 64 % 4 == 0 && open.size() < 20) {
      add(large, 1);
      open.push_back(large);
    } else if (bits / 64 % 4 == 1 && !open.empty()) {
      add(-open.back(), 1);
      open.pop_back();
    } else {
      add(small, seed % 3 == 1 ? 1 : std::ldexp(1.0, static_cast<int>(bits / 256 % 8) - 4));
    }
  }
  return products;
}

// AMD's units round down, which adds up where terms cancel or stand far apart.
TEST(RunningBound, HoldsForHostileTermsOnUnitsThatRoundDown) {
  for (const auto& [text, format] :
       {std::pair{"mma(mi300.mfma.f16.f32)", softfloat::binary16},
        std::pair{"mma(mi300.mfma.bf16.f32)", softfloat::bfloat16},
        std::pair{"mma(mi300.mfma.bf16.f32(final_rounding_down=no))", softfloat::bfloat16},
        std::pair{"mma(mi300.mfma.e4m3fnuz.f32)", softfloat::e4m3fnuz}}) {
    const Order order = parse_order(text).value();
    double closest = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const std::int64_t terms = seed % 2 == 0 ? 64 : 1000;
      const SumTree tree = build_sum_tree(order, terms).value();
      const Products products = make_hostile_products(format, terms, seed);
      const double computed = softfloat::to_double(
          softfloat::binary32,
          sum_products(order, Product::rounded, format, softfloat::binary32, products.a, products.b)
              .bits);
      const auto error = static_cast<double>(std::abs(computed - products.sum));
      const std::optional<double> bound =
          running_bound(tree, format, softfloat::binary32, products.left, products.right);
      ASSERT_TRUE(bound) << text;
      EXPECT_LE(error, *bound) << text << ' ' << seed;
      closest = std::max(closest, error / *bound);
    }
    EXPECT_GT(closest, 0.01) << text;
  }
}

// One product of 2^15 beside seven just below 2^-9, which truncation at 24 bits below it drops.
TEST(RunningBound, IsCloseWhereAUnitThatRoundsDownDropsTerms) {
  const Order order = parse_order("mma(mi300.mfma.f16.f32)").value();
  const SumTree tree = build_sum_tree(order, 8).value();
  std::vector<double> a(8, (2 - 0x1p-10) * 0x1p-5);
  std::vector<double> b(8, 0x1p-5);
  a[0] = 0x1p8;
  b[0] = 0x1p7;
  const auto codes = [](const std::vector<double>& numbers) {
    std::vector<softfloat::Bits> out;
    for (const double x : numbers) {
      out.push_back(
          softfloat::convert(softfloat::binary16, softfloat::binary64, softfloat::from_double(x))
              .bits);
    }
    return out;
  };
  const double computed = softfloat::to_double(
      softfloat::binary32, sum_products(order, Product::rounded, softfloat::binary16,
                                        softfloat::binary32, codes(a), codes(b))
                               .bits);
  EXPECT_EQ(computed, 0x1p15);
  const double error = 7 * (2 - 0x1p-10) * 0x1p-10;
  const double bound = running_bound(tree, softfloat::binary16, softfloat::binary32, a, b).value();
  EXPECT_LE(error, bound);
  EXPECT_LT(bound, 1.5 * error);
}

TEST(RunningBound, ByHand) {
  // 1 + 2^-30 in binary32: one rounding of 1, which may be off by 2^-24.
  const SumTree two = build_sum_tree(parse_order("sequential").value(), 2).value();
  const double bound = running_bound(two, softfloat::binary32, softfloat::binary32,
                                     std::vector<double>{1, 1}, std::vector<double>{1, 0x1p-30})
                           .value();
  EXPECT_GE(bound, 2 * 0x1p-24);  // the first product's rounding, then the sum's
  EXPECT_LE(bound, 2.001 * 0x1p-24 + 0x1p-50);
}

// All factors subnormal: they are aligned as if they had the smallest normal exponent.
TEST(RunningBound, HoldsForSubnormalFactors) {
  const Order order = parse_order("mma(h100.wgmma.f16.f32)").value();
  const SumTree tree = build_sum_tree(order, 16).value();
  std::vector<softfloat::Bits> codes(16, 0x0001);  // 2^-24
  const std::vector<double> values(16, 0x1p-24);
  codes[0] = 0x03ff;
  std::vector<double> left = values;
  left[0] = 1023 * 0x1p-24;
  const double computed = softfloat::to_double(
      softfloat::binary32,
      sum_products(order, Product::rounded, softfloat::binary16, softfloat::binary32, codes, codes)
          .bits);
  const double exact = (1023.0 * 1023.0 + 15) * 0x1p-48;
  const double bound =
      running_bound(tree, softfloat::binary16, softfloat::binary32, left, left).value();
  EXPECT_LE(std::abs(computed - exact), bound);
}

TEST(RunningBound, SaysWhereThereIsNone) {
  const Order order = parse_order("mma(mi210.mfma.f16.f32)").value();
  const SumTree tree = build_sum_tree(order, 32).value();
  const std::vector<double> ones(32, 1.0);
  EXPECT_FALSE(running_bound(tree, softfloat::binary16, softfloat::binary32, ones, ones));
}

}  // namespace
}  // namespace kvsim
