// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// The reference evaluator against two evaluators that share nothing with it: the host's float
// arithmetic, and integers with a fixed point. Both evaluate the trees of tests/sim/order_oracle.h.

#include "sim/sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/order.h"
#include "softfloat/format.h"
#include "tests/sim/order_oracle.h"
#include "tests/sim/random_orders.h"

namespace kvsim {
namespace {

using order_oracle::Node;
using order_oracle::Tree;
using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;
using softfloat::Rounding;

__extension__ using int128 = __int128;

constexpr Format binary16{5, 11, 15};
constexpr Format bfloat16{8, 8, 127};
constexpr Format binary32{8, 24, 127};
constexpr Format e4m3{4, 4, 7, softfloat::Specials::nan_only};

Order order_of(const std::string& text) { return parse_order(text).value(); }

Bits bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// ---------------------------------------------------------------- written out by hand

// (1 + 2^-23)² = 1 + 2^-22 + 2^-46 needs more than 24 bits; what an addition sees of it shows
// whether the product was rounded first.
TEST(Sum, FusedAdditionsHappenInsideAccumulatorsOnly) {
  const std::vector<Bits> a = {bits_of(-1.0F), bits_of(1.0F + 0x1p-24F * 2)};
  const std::vector<Bits> b = {bits_of(1.0F), bits_of(1.0F + 0x1p-24F * 2)};
  const auto sum = [&](const char* order, Product product) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(
        sum_products(order_of(order), product, binary32, binary32, a, b).bits));
  };
  const float exact = 0x1p-22F + 0x1p-46F;  // (1 + 2^-23)² − 1
  const float from_rounded = 0x1p-22F;
  for (const char* fuses : {"sequential", "pairwise", "halving", "lanes(1,1)", "blocks(2)"}) {
    EXPECT_EQ(sum(fuses, Product::fused), exact) << fuses;
  }
  for (const char* joins : {"blocks(1)", "split(2)", "lanes(2,1)", "lanes(1,2)",
                            "lanes(2,1,join=sequential)", "lanes(2,1,join=halving)"}) {
    EXPECT_EQ(sum(joins, Product::fused), from_rounded) << joins;
  }
  EXPECT_EQ(sum("lanes(2,1)", Product::exact), exact);
  EXPECT_EQ(sum("sequential", Product::rounded), from_rounded);
}

// ---------------------------------------------------------------- the host's float

struct Floats {
  std::vector<float> a;
  std::vector<float> b;
};

float host_product(const Floats& terms, std::int64_t i, Product product) {
  const auto k = static_cast<std::size_t>(i);
  return product == Product::fused ? std::fma(terms.a[k], terms.b[k], 0.0F)
                                   : terms.a[k] * terms.b[k];
}

/// Ties to even, by the host's integers: the upper 16 bits of a float.
float to_bfloat16(float value) {
  if (std::isnan(value)) return value;
  const auto code = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rest = code & 0xffffU;
  std::uint32_t upper = code >> 16;
  if (rest > 0x8000U || (rest == 0x8000U && upper % 2 != 0)) ++upper;
  return std::bit_cast<float>(upper << 16);
}

/// Product::rounded or Product::fused; trees without exact sums.
float host_sum(const Node& node, const Floats& terms, Product product) {
  if (node->kind == Tree::Kind::zero) return 0.0F;
  if (node->kind == Tree::Kind::term) return host_product(terms, node->term, product);
  if (node->kind == Tree::Kind::partial_sum) return host_sum(node->left, terms, product);
  if (node->kind == Tree::Kind::rounded) return to_bfloat16(host_sum(node->left, terms, product));
  const float left = host_sum(node->left, terms, product);
  if (product == Product::fused && node->right->kind == Tree::Kind::term) {
    const auto k = static_cast<std::size_t>(node->right->term);
    return std::fma(terms.a[k], terms.b[k], left);
  }
  return left + host_sum(node->right, terms, product);
}

bool has_exact_item(const std::vector<order_oracle::Spec>& specs) {
  return specs.back().word == "exact";
}

Bits canonical(float value) { return std::isnan(value) ? Bits{0x7fc00000} : bits_of(value); }

void compare_with_host(std::uint64_t seed, bool any_bits) {
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 10000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    const std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n);
    if (has_exact_item(specs)) continue;
    Floats terms;
    std::vector<Bits> a;
    std::vector<Bits> b;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::vector<float>* side : {&terms.a, &terms.b}) {
        auto code = static_cast<std::uint32_t>(random());
        if (!any_bits) code = (code & 0x807fffffU) | ((120 + (code >> 23) % 16) << 23);
        side->push_back(std::bit_cast<float>(code));
      }
      a.push_back(bits_of(terms.a.back()));
      b.push_back(bits_of(terms.b.back()));
    }
    const std::string text = order_oracle::text(specs);
    const Node tree = order_oracle::build(specs, n);
    for (const Product product : {Product::rounded, Product::fused}) {
      const Rounded sum = sum_products(order_of(text), product, binary32, binary32, a, b);
      ASSERT_EQ(sum.bits, canonical(host_sum(tree, terms, product)))
          << text << " over " << n << ", " << to_string(product);
    }
  }
}

TEST(Sum, Binary32EqualsTheHost) { compare_with_host(1, false); }

// Mostly NaN, infinity, overflow and underflow once n grows.
TEST(Sum, Binary32OfAnyBitsEqualsTheHost) { compare_with_host(2, true); }

// ---------------------------------------------------------------- integers with a fixed point

/// Partial sums as multiples of 2^−point; products of two operands that are multiples of
/// 2^(−point/2). Nothing overflows in the ranges that the test draws from.
struct FixedPoint {
  int point;
  int precision;  // of the accumulator
  int smallest;   // exponent of the accumulator's smallest subnormal number
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  Product product;
  bool inexact = false;

  /// Ties to even.
  int128 round(int128 value) { return round(value, precision, smallest); }
  int128 round(int128 value, int to_precision, int to_smallest) {
    const bool negative = value < 0;
    int128 magnitude = negative ? -value : value;
    int length = 0;
    while ((magnitude >> length) != 0) ++length;
    const int shift = std::max(length - to_precision, to_smallest + point);
    if (shift <= 0) return value;
    const int128 unit = int128{1} << shift;
    const int128 rest = magnitude % unit;
    magnitude -= rest;
    if (rest * 2 > unit || (rest * 2 == unit && (magnitude >> shift) % 2 != 0)) magnitude += unit;
    inexact |= rest != 0;
    return negative ? -magnitude : magnitude;
  }

  int128 exact_term(std::int64_t i) const {
    return static_cast<int128>(a[static_cast<std::size_t>(i)]) * b[static_cast<std::size_t>(i)];
  }

  /// The value of a node; a term on its own stays exact where the product rule is exact.
  int128 value(const Node& node) {
    switch (node->kind) {
      case Tree::Kind::zero:
        return 0;
      case Tree::Kind::term:
        return product == Product::exact ? exact_term(node->term) : round(exact_term(node->term));
      case Tree::Kind::exact: {
        int128 sum = 0;
        for (const Node& part : node->parts) {
          if (part->kind == Tree::Kind::term) sum += exact_term(part->term);
        }
        return round(sum);
      }
      case Tree::Kind::partial_sum:
        return value(node->left);
      case Tree::Kind::rounded: {
        const int128 sum = round(value(node->left));  // a single exact product is rounded first
        return node->format == "e5m2" ? round(sum, 3, -16) : round(sum, 8, -133);
      }
      case Tree::Kind::addition:
        break;
    }
    const int128 left = value(node->left);
    if (product != Product::rounded && node->right->kind == Tree::Kind::term) {
      return round(left + exact_term(node->right->term));
    }
    return round(left + value(node->right));
  }
};

/// The code of value × 2^exponent (exactly representable, normal or subnormal), built by hand.
Bits encode(const Format& f, int128 value, int exponent) {
  if (value == 0) return 0;
  const Bits sign = value < 0 ? Bits{1} << (f.exponent_bits + f.precision - 1) : 0;
  if (value < 0) value = -value;
  while (value % 2 == 0) {
    value /= 2;
    ++exponent;
  }
  int length = 0;
  while ((value >> length) != 0) ++length;
  int field = exponent + length - 1 + f.bias;
  if (field < 1) field = 1;
  const int shift = exponent - (field - f.bias - (f.precision - 1));
  const auto significand = static_cast<Bits>(value << shift);
  const Bits hidden = Bits{1} << (f.precision - 1);
  return sign | (significand >= hidden
                     ? (static_cast<Bits>(field) << (f.precision - 1)) + (significand - hidden)
                     : significand);
}

struct FormatPair {
  const char* name;
  Format input;
  Format accumulator;
  int operand_unit;  // operands are k × 2^operand_unit
  int operand_bits;  // |k| < 2^operand_bits and at most the input's precision of significant bits
};

/// Names the case in test lists, where GoogleTest would show the bytes of the pointer.
void PrintTo(const FormatPair& pair, std::ostream* out) { *out << pair.name; }

class SumOfFormats : public testing::TestWithParam<FormatPair> {};

TEST_P(SumOfFormats, EqualsIntegerArithmetic) {
  const FormatPair& pair = GetParam();
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 3000; ++trial) {
    const auto n = static_cast<std::int64_t>(random() % 65);
    const std::vector<std::string> formats = {pair.accumulator == binary16 ? "e5m2" : "bfloat16"};
    const std::vector<order_oracle::Spec> specs = order_oracle::random_order(random, n, formats);
    FixedPoint oracle{-2 * pair.operand_unit,
                      pair.accumulator.precision,
                      2 - pair.accumulator.bias - pair.accumulator.precision,
                      {},
                      {},
                      Product::rounded};
    std::vector<Bits> a;
    std::vector<Bits> b;
    for (std::int64_t i = 0; i < n; ++i) {
      for (auto [integers, codes] : {std::pair{&oracle.a, &a}, std::pair{&oracle.b, &b}}) {
        const int p = pair.input.precision;
        const auto shift =
            static_cast<int>(random() % static_cast<unsigned>(pair.operand_bits - p + 1));
        auto k = static_cast<std::int64_t>(random() >> (64 - p)) << shift;
        if (k == 0) k = 1;  // signs of zero are tested apart
        if (random() % 2 == 0) k = -k;
        integers->push_back(k);
        codes->push_back(encode(pair.input, k, pair.operand_unit));
      }
    }
    const std::string text = order_oracle::text(specs);
    const Node tree = order_oracle::build(specs, n);
    for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
      oracle.product = product;
      oracle.inexact = false;
      const int128 expected = oracle.round(oracle.value(tree));
      const Rounded sum = sum_products(order_of(text), product, pair.input, pair.accumulator, a, b);
      ASSERT_EQ(expected == 0 ? sum.bits & ~pair.accumulator.sign_bit() : sum.bits,
                encode(pair.accumulator, expected, -oracle.point))
          << text << " over " << n << ", " << to_string(product);
      ASSERT_EQ(sum.flags.inexact, oracle.inexact)
          << text << " over " << n << ", " << to_string(product);
    }
  }
}

// Sums stay below the accumulator's largest number: 64 × 2^(2·(operand_unit + operand_bits)).
INSTANTIATE_TEST_SUITE_P(
    Formats, SumOfFormats,
    testing::Values(FormatPair{"binary16_binary16", binary16, binary16, -14, 18},
                    FormatPair{"binary16_binary32", binary16, binary32, -20, 30},
                    FormatPair{"bfloat16_bfloat16", bfloat16, bfloat16, -20, 30},
                    FormatPair{"bfloat16_binary32", bfloat16, binary32, -20, 30},
                    FormatPair{"binary32_binary16", binary32, binary16, -24, 28},
                    FormatPair{"binary32_binary32", binary32, binary32, -20, 40},
                    FormatPair{"e4m3_binary16", e4m3, binary16, -9, 12}),
    [](const testing::TestParamInfo<FormatPair>& pair) { return std::string(pair.param.name); });

// ---------------------------------------------------------------- special cases, by hand

Rounded sum32(const std::string& order, Product product, const std::vector<float>& a,
              const std::vector<float>& b, const Mode& mode = {}) {
  std::vector<Bits> x(a.size());
  std::vector<Bits> y(b.size());
  std::transform(a.begin(), a.end(), x.begin(), bits_of);
  std::transform(b.begin(), b.end(), y.begin(), bits_of);
  return sum_products(order_of(order), product, binary32, binary32, x, y, mode);
}

constexpr Bits plus_zero = 0;
constexpr Bits minus_zero = 0x80000000;
constexpr Bits canonical_nan = 0x7fc00000;
constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Sum, NoTermsGivePlusZero) {
  for (const char* order : {"sequential", "exact", "lanes(4,2,init=zero)", "halving"}) {
    for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
      EXPECT_EQ(sum32(order, product, {}, {}), (Rounded{plus_zero, {}})) << order;
    }
  }
}

TEST(Sum, TheStartDecidesTheSignOfZero) {
  const std::vector<float> zeros = {-0.0F, -0.0F};
  const std::vector<float> ones = {1.0F, 1.0F};
  EXPECT_EQ(sum32("sequential", Product::rounded, zeros, ones).bits, minus_zero);
  EXPECT_EQ(sum32("sequential", Product::exact, zeros, ones).bits, minus_zero);
  EXPECT_EQ(sum32("exact", Product::rounded, zeros, ones).bits, minus_zero);
  EXPECT_EQ(sum32("sequential", Product::fused, zeros, ones).bits, plus_zero);  // fma(−0, 1, +0)
  for (const char* order : {"sequential(init=zero)", "exact(init=zero)", "pairwise(init=zero)",
                            "lanes(2,1,init=zero)", "blocks(1,init=zero)", "split(2,init=zero)",
                            "reverse(init=zero)", "perm(1,0,init=zero)", "halving(init=zero)"}) {
    for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
      EXPECT_EQ(sum32(order, product, zeros, ones).bits, plus_zero) << order;
    }
  }
  EXPECT_EQ(sum32("sequential", Product::exact, {-0.0F}, {1.0F}).bits, minus_zero);
}

TEST(Sum, ProductRulesDifferWhereTheyShould) {
  // (1 + 2^−23)² = 1 + 2^−22 + 2^−46, rounded to 1 + 2^−22.
  const float x = 1.0F + 0x1p-23F;
  const float square = 1.0F + 0x1p-22F;
  // x² − square: the rounding error of x² is lost by `rounded`, and by `fused` in the first place.
  EXPECT_EQ(sum32("sequential", Product::rounded, {x, -1.0F}, {x, square}).bits, bits_of(0.0F));
  EXPECT_EQ(sum32("sequential", Product::fused, {x, -1.0F}, {x, square}).bits, bits_of(0.0F));
  EXPECT_EQ(sum32("sequential", Product::exact, {x, -1.0F}, {x, square}).bits, bits_of(0x1p-46F));
  // In the second place fma keeps it.
  EXPECT_EQ(sum32("sequential", Product::rounded, {-1.0F, x}, {square, x}).bits, bits_of(0.0F));
  EXPECT_EQ(sum32("sequential", Product::fused, {-1.0F, x}, {square, x}).bits, bits_of(0x1p-46F));
  // Under init=zero the first product is rounded by its addition to +0.
  EXPECT_EQ(sum32("sequential(init=zero)", Product::exact, {x, -1.0F}, {x, square}).bits,
            bits_of(0.0F));
  // A tail of one product stays exact until the joined lanes are added to it.
  EXPECT_EQ(
      sum32("lanes(2,1,tail=scalar-first)", Product::exact, {-1.0F, 0.0F, x}, {square, 1.0F, x})
          .bits,
      bits_of(0x1p-46F));
  EXPECT_EQ(
      sum32("lanes(2,1,tail=scalar-first)", Product::fused, {-1.0F, 0.0F, x}, {square, 1.0F, x})
          .bits,
      bits_of(0.0F));
  // A single product is rounded at the end.
  const Rounded single = sum32("sequential", Product::exact, {x}, {x});
  EXPECT_EQ(single, (Rounded{bits_of(square), {.inexact = true}}));
}

TEST(Sum, SpecialValuesAndFlags) {
  for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
    for (const char* order : {"sequential", "pairwise", "exact", "lanes(2,1)"}) {
      SCOPED_TRACE(std::string(order) + ", " + std::string(to_string(product)));
      EXPECT_EQ(sum32(order, product, {infinity, -infinity}, {1.0F, 1.0F}),
                (Rounded{canonical_nan, {.invalid = true}}));
      EXPECT_EQ(sum32(order, product, {infinity, 1.0F}, {0.0F, 1.0F}),
                (Rounded{canonical_nan, {.invalid = true}}));
      EXPECT_EQ(sum32(order, product, {1.0F, infinity}, {1.0F, -2.0F}),
                (Rounded{bits_of(-infinity), {}}));
      const Rounded quiet = sum_products(order_of(order), product, binary32, binary32,
                                         std::vector<Bits>{0x7fc00001, bits_of(1.0F)},
                                         std::vector<Bits>{bits_of(1.0F), bits_of(1.0F)});
      EXPECT_EQ(quiet, (Rounded{canonical_nan, {}}));
      const Rounded signaling = sum_products(order_of(order), product, binary32, binary32,
                                             std::vector<Bits>{0x7f800001, bits_of(1.0F)},
                                             std::vector<Bits>{bits_of(1.0F), bits_of(1.0F)});
      EXPECT_EQ(signaling, (Rounded{canonical_nan, {.invalid = true}}));
      EXPECT_EQ(sum32(order, product, {0x1p127F, 0x1p127F}, {1.0F, 1.0F}),
                (Rounded{bits_of(infinity), {.overflow = true, .inexact = true}}));
      EXPECT_EQ(sum32(order, product, {0x1p-149F}, {0.5F}).bits, plus_zero);
      EXPECT_EQ(sum32(order, product, {0x1p-149F}, {0.5F}).flags,
                (softfloat::Flags{.underflow = true, .inexact = true}));
    }
  }
}

TEST(Sum, ModeHoldsForEveryOperation) {
  const Mode up{.rounding = Rounding::toward_positive};
  const Mode down{.rounding = Rounding::toward_negative};
  const Mode flush{.subnormals = softfloat::Subnormals::flush_inputs};
  for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
    SCOPED_TRACE(to_string(product));
    EXPECT_EQ(sum32("sequential", product, {1.0F, 0x1p-60F, 0x1p-60F}, {1.0F, 1.0F, 1.0F}, up).bits,
              bits_of(1.0F + 0x1p-22F));
    EXPECT_EQ(sum32("exact", product, {1.0F, 0x1p-60F, 0x1p-60F}, {1.0F, 1.0F, 1.0F}, up).bits,
              bits_of(1.0F + 0x1p-23F));
    EXPECT_EQ(sum32("sequential", product, {1.0F, -1.0F}, {1.0F, 1.0F}, down).bits, minus_zero);
    for (const char* order : {"sequential", "exact"}) {
      EXPECT_EQ(sum32(order, product, {0x1p-140F, 0x1p-140F}, {0x1p20F, 0x1p20F}, flush).bits,
                plus_zero);
    }
  }
}

TEST(Sum, ProductNames) {
  EXPECT_EQ(parse_product("rounded").value(), Product::rounded);
  EXPECT_EQ(parse_product("fused").value(), Product::fused);
  EXPECT_EQ(parse_product("exact").value(), Product::exact);
  EXPECT_EQ(parse_product("fusd").error().message,
            "product rule 'fusd'; accepted: rounded, fused, exact (did you mean fused?)");
  EXPECT_EQ(parse_product("a\nb").error().message,
            "product rule 'a\\x0ab'; accepted: rounded, fused, exact");
}

}  // namespace
}  // namespace kvsim
