// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention_row.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "sim/error_bounds.h"
#include "sim/error_summary.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// One row of random inputs whose values are numbers of binary16.
struct RandomRow {
  std::int64_t keys;
  std::int64_t head_dim;
  std::vector<double> q, k_transposed, v;

  RandomRow(std::int64_t n, std::int64_t d, unsigned seed, double spread) : keys(n), head_dim(d) {
    std::mt19937 engine(seed);
    const auto fill = [&](std::vector<double>& values, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        const double unit = static_cast<double>(engine()) * 0x1p-31 - 1;
        const int exponent = static_cast<int>(engine() % 8) - 4;
        const double value = spread * std::ldexp(unit, exponent);
        values.push_back(static_cast<double>(static_cast<_Float16>(value)));
      }
    };
    fill(q, d);
    fill(k_transposed, n * d);
    fill(v, n * d);
  }

  [[nodiscard]] AttentionRow view() const {
    return {.keys = keys,
            .head_dim = head_dim,
            .q = q,
            .k_transposed = k_transposed,
            .key_stride = keys,
            .v = v};
  }
};

double exp_by_mpfr_to_float(float x) {
  mpfr_t value;
  mpfr_init2(value, 200);
  mpfr_set_flt(value, x, MPFR_RNDN);
  mpfr_exp(value, value, MPFR_RNDN);
  const float result = mpfr_get_flt(value, MPFR_RNDN);
  mpfr_clear(value);
  return static_cast<double>(result);
}

/// Attention as a reader of the definition would write it, on the host's own float and half; the
/// order of all three sums is that of the loops.
std::vector<double> plain_attention(const RandomRow& row) {
  const auto half = [](float x) { return static_cast<float>(static_cast<_Float16>(x)); };
  const auto n = static_cast<std::size_t>(row.keys);
  const auto dims = static_cast<std::size_t>(row.head_dim);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(row.head_dim)));
  std::vector<float> scores(n), p(n);
  float largest = -INFINITY;
  for (std::size_t j = 0; j < n; ++j) {
    float sum = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      const float product =
          static_cast<float>(row.q[d]) * static_cast<float>(row.k_transposed[d * n + j]);
      sum = d == 0 ? product : sum + product;
    }
    scores[j] = half(sum * scale);
    largest = std::max(largest, scores[j]);
  }
  float row_sum = 0;
  for (std::size_t j = 0; j < n; ++j) {
    p[j] = static_cast<float>(exp_by_mpfr_to_float(scores[j] - largest));
    row_sum = j == 0 ? p[j] : row_sum + p[j];
  }
  std::vector<double> out(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    float sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const float product = half(p[j] / row_sum) * static_cast<float>(row.v[j * dims + d]);
      sum = j == 0 ? product : sum + product;
    }
    out[d] = static_cast<double>(half(sum));
  }
  return out;
}

AttentionOrders everywhere(std::string_view text) {
  const Order order = parse_order(text).value();
  return {order, order, order};
}

TEST(AttentionRow, SequentialEqualsAPlainLoopOnTheHost) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomRow row(1 + seed * 3 % 50, 1 + seed * 7 % 33, seed, 2.0);
    const BoundedValues computed = attention_of_row({}, everywhere("sequential"), row.view());
    EXPECT_EQ(computed.value, plain_attention(row)) << "seed " << seed;
  }
}

/// Exact attention by MPFR with 400 bits.
std::vector<DoubleDouble> mpfr_attention(const RandomRow& row) {
  constexpr mpfr_prec_t bits = 400;
  const auto n = static_cast<std::size_t>(row.keys);
  const auto dims = static_cast<std::size_t>(row.head_dim);
  std::vector<mpfr_t> p(n);
  mpfr_t t, sum, root;
  mpfr_inits2(bits, t, sum, root, nullptr);
  mpfr_sqrt_ui(root, static_cast<unsigned long>(row.head_dim), MPFR_RNDN);
  mpfr_set_zero(sum, 1);
  for (std::size_t j = 0; j < n; ++j) {
    mpfr_init2(p[j], bits);
    mpfr_set_zero(p[j], 1);
    for (std::size_t d = 0; d < dims; ++d) {
      mpfr_set_d(t, row.q[d], MPFR_RNDN);
      mpfr_mul_d(t, t, row.k_transposed[d * n + j], MPFR_RNDN);
      mpfr_add(p[j], p[j], t, MPFR_RNDN);
    }
    mpfr_div(p[j], p[j], root, MPFR_RNDN);
    mpfr_exp(p[j], p[j], MPFR_RNDN);  // no shift: 400 bits and MPFR's exponents need none
    mpfr_add(sum, sum, p[j], MPFR_RNDN);
  }
  std::vector<DoubleDouble> out(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    mpfr_set_zero(root, 1);
    for (std::size_t j = 0; j < n; ++j) {
      mpfr_mul_d(t, p[j], row.v[j * dims + d], MPFR_RNDN);
      mpfr_add(root, root, t, MPFR_RNDN);
    }
    mpfr_div(root, root, sum, MPFR_RNDN);
    const double high = mpfr_get_d(root, MPFR_RNDN);
    mpfr_sub_d(root, root, high, MPFR_RNDN);
    out[d] = {high, mpfr_get_d(root, MPFR_RNDN)};
  }
  for (auto& value : p) mpfr_clear(value);
  mpfr_clears(t, sum, root, nullptr);
  return out;
}

std::vector<DoubleDouble> exact_attention(const RandomRow& row) {
  return exact_values(row.view(), exact_softmax(exact_scores(row.view())).p);
}

TEST(AttentionRow, ExactAttentionAgreesWithMpfr) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const RandomRow row(1 + seed * 5 % 60, 1 + seed * 11 % 40, seed, 3.0);
    const std::vector<DoubleDouble> expected = mpfr_attention(row);
    const std::vector<DoubleDouble> computed = exact_attention(row);
    for (std::size_t d = 0; d < expected.size(); ++d) {
      // 2^-94 of the largest value leaves room for the scores' own size times 2^-100.
      EXPECT_LE(std::abs((computed[d] - expected[d]).high), 0x1p-94 * 48) << seed << ' ' << d;
    }
  }
}

struct BoundCase {
  const char* accumulator;
  Product product;
  double spread;
};

class AttentionBounds : public testing::TestWithParam<BoundCase> {};

/// The bounds hold on data that is hard for them: cancellation, large scores, subnormal products.
TEST_P(AttentionBounds, CoverEveryError) {
  const BoundCase& parameters = GetParam();
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = softfloat::find_format(parameters.accumulator)->format;
  arithmetic.product = parameters.product;
  std::int64_t bounded = 0;
  std::int64_t elements = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const RandomRow row(2 + seed * 13 % 90, 1 + seed * 17 % 64, seed, parameters.spread);
    for (const char* order :
         {"sequential", "reverse", "pairwise", "halving", "lanes(4,2)", "blocks(8)/pairwise",
          "split(3)/lanes(2,2,tail=scalar)", "exact", "blocks(4,init=zero)/exact"}) {
      const AttentionOrders orders = everywhere(order);
      for (int rounded = 0; rounded < 8; ++rounded) {
        arithmetic.round_scores = (rounded & 1) != 0;
        arithmetic.round_p = (rounded & 2) != 0;
        arithmetic.round_out = (rounded & 4) != 0;
        const AttentionRow view = row.view();
        ErrorSums scores, softmax, values, attention;
        const std::vector<DoubleDouble> exact = exact_scores(view);
        const BoundedValues computed = scores_of_row(arithmetic, orders.scores, view);
        scores.add(scores_format(arithmetic), computed, exact);
        EXPECT_TRUE(scores.bounds_hold()) << order << ", scores, seed " << seed;
        if (scores.summary().not_finite > 0) continue;

        const std::vector<DoubleDouble> widened(computed.value.begin(), computed.value.end());
        const ExactSoftmax exact_p = exact_softmax(widened);
        const SoftmaxOfRow p =
            softmax_of_row(arithmetic, orders.row_sum, computed.value, view.simd);
        softmax.add(arithmetic.accumulator, p.row_sum, std::span(&exact_p.row_sum, 1));
        softmax.add(p_format(arithmetic), p.p, exact_p.p);
        EXPECT_TRUE(softmax.bounds_hold()) << order << ", softmax, seed " << seed;

        const std::vector<DoubleDouble> weights(p.p.value.begin(), p.p.value.end());
        values.add(out_format(arithmetic),
                   values_of_row(arithmetic, orders.values, view, p.p.value),
                   exact_values(view, weights));
        EXPECT_TRUE(values.bounds_hold()) << order << ", P·V, seed " << seed;

        attention.add(out_format(arithmetic), attention_of_row(arithmetic, orders, view),
                      exact_values(view, exact_softmax(exact).p));
        EXPECT_TRUE(attention.bounds_hold()) << order << ", attention, seed " << seed;
        elements += values.summary().elements;
        if (values.summary().max_of_running_bound > 0.05) bounded += values.summary().elements;
      }
    }
  }
  // A bound that is never approached would hold for a wrong reason.
  EXPECT_GT(bounded, elements / 10);
}

INSTANTIATE_TEST_SUITE_P(Formats, AttentionBounds,
                         testing::Values(BoundCase{"binary32", Product::rounded, 1.0},
                                         BoundCase{"binary32", Product::fused, 4.0},
                                         BoundCase{"binary16", Product::rounded, 1.0},
                                         BoundCase{"binary16", Product::rounded, 0x1p-9},
                                         BoundCase{"binary16", Product::fused, 1.0},
                                         BoundCase{"bfloat16", Product::rounded, 1.0},
                                         BoundCase{"bfloat16", Product::exact, 2.0},
                                         BoundCase{"tf32", Product::rounded, 0x1p-7}));

void expect_just_above(double bound, double closed_form) {
  EXPECT_GE(bound, closed_form * (1 - 0x1p-50));
  EXPECT_LE(bound, closed_form * (1 + 0x1p-28));
}

SoftmaxOfRow softmax_in(const softfloat::Format& accumulator, const std::vector<double>& scores,
                        bool round_p = false) {
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = accumulator;
  arithmetic.round_p = round_p;
  return softmax_of_row(arithmetic, parse_order("sequential").value(), scores, best_simd_level());
}

// Two scores that are 8 apart, in binary16: the bounds term by term, from the definitions.
TEST(AttentionRow, SoftmaxBoundsHaveTheirClosedForm) {
  constexpr double u = 0x1p-11;
  constexpr double q = 0x1p-25;
  const SoftmaxOfRow softmax = softmax_in(softfloat::binary16, {0, -8}, true);
  const double e = std::exp(-8.0);
  const double shift = std::expm1(8 * u);
  const double relative[] = {u, shift + u * (1 + shift)};
  const double inherited = relative[0] + relative[1] * e + 2 * q;
  const double sum = softmax.row_sum.value[0];
  EXPECT_NEAR(sum, 1 + e, 2 * u);
  expect_just_above(softmax.row_sum.running[0], inherited + u * sum);
  const double terms = 1 + e + inherited;
  const double of_sum = u * (terms * (1 + u) + 4 * q) + u * terms + 4 * q * (1 + u);
  expect_just_above(softmax.row_sum.a_priori[0], inherited + of_sum);
  for (int j = 0; j < 2; ++j) {
    const double p = (j == 0 ? 1 : e) / (1 + e);
    const auto ratio = [&](double sum_error) {
      const double r = sum_error / (1 + e);
      return p * (relative[j] + u + relative[j] * u + r) / (1 - r) + 4 * q;
    };
    const auto i = static_cast<std::size_t>(j);
    const double stored = std::max(u * softmax.p.value[i], q);
    // Off by what the sum of the exact terms is known to: 2^−31.
    EXPECT_NEAR(softmax.p.running[i] / (ratio(inherited + u * sum) + stored), 1, 0x1p-28);
    const double a_priori = ratio(inherited + of_sum);
    EXPECT_NEAR(softmax.p.a_priori[i] / (a_priori + std::max(u * (p + a_priori), q)), 1, 0x1p-28);
  }
}

// A probability that underflows to 0 is off by its whole size.
TEST(AttentionRow, UnderflowingProbabilitiesAreCovered) {
  const SoftmaxOfRow softmax = softmax_in(softfloat::binary16, {0, -30});
  EXPECT_EQ(softmax.p.value[1], 0);
  EXPECT_GE(softmax.p.running[1], 9e-14);
}

// −1/4 is half a quantum of e2m1 and rounds to 0: an error of 1/4, not of u/4.
TEST(AttentionRow, SubnormalDifferencesAreOffByHalfAQuantum) {
  const SoftmaxOfRow softmax = softmax_in(softfloat::e2m1, {0, -0.25});
  const double u = 0.25, q = 0.25, shift = std::expm1(q);
  EXPECT_EQ(softmax.row_sum.value[0], 2);
  expect_just_above(softmax.row_sum.running[0],
                    u * 2 + u + q + (shift + u * (1 + shift)) * std::exp(-0.25) + q);
}

// u|d| alone allows a factor e^3906, on an exponential that is 0 either way.
TEST(AttentionRow, FarApartScoresKeepFiniteBounds) {
  const SoftmaxOfRow softmax = softmax_in(softfloat::bfloat16, {0, -1e6});
  EXPECT_EQ(softmax.row_sum.value[0], 1);
  EXPECT_LE(softmax.row_sum.running[0], 3 * 0x1p-8);
  EXPECT_LE(softmax.row_sum.a_priori[0], 4 * 0x1p-8);
  EXPECT_LE(softmax.p.running[1], 1e-38);
}

// −500 is NaN in e4m3: the bound from the inputs must know it too.
TEST(AttentionRow, DifferencesThatOverflowHaveNoBound) {
  const SoftmaxOfRow softmax = softmax_in(softfloat::e4m3, {0, -500});
  EXPECT_TRUE(std::isnan(softmax.row_sum.value[0]));
  EXPECT_EQ(softmax.row_sum.a_priori[0], no_bound);
  EXPECT_EQ(softmax.p.a_priori[0], no_bound);
}

RandomRow row_of(std::int64_t keys, std::vector<double> q, std::vector<double> k_transposed,
                 std::vector<double> v) {
  RandomRow row(keys, static_cast<std::int64_t>(q.size()), 0, 1.0);
  row.q = std::move(q);
  row.k_transposed = std::move(k_transposed);
  row.v = std::move(v);
  return row;
}

// 1 + ½ in binary16, times 1/√2, stored in binary16.
TEST(AttentionRow, ScoreBoundsHaveTheirClosedForm) {
  constexpr double u = 0x1p-11;
  constexpr double q = 0x1p-25;
  const RandomRow row = row_of(1, {1, 1}, {1, 0.5}, {0, 0});
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = softfloat::binary16;
  const BoundedValues scores =
      scores_of_row(arithmetic, parse_order("sequential").value(), row.view());
  const double scale = static_cast<double>(static_cast<_Float16>(std::sqrt(0.5))) * (1 + 2 * u);
  const double value = scores.value[0];
  EXPECT_NEAR(value, 1.5 * std::sqrt(0.5), 2 * u);
  // Two products and a sum of magnitudes 1, ½ and 3/2; the scale; the store.
  expect_just_above(scores.running[0], scale * (3 * u + u * 1.5) + u * value + u * value);
  const double of_sum = u * (1.5 * (1 + u) + 4 * q) + u * 1.5 + 4 * q * (1 + u);
  const double scaled = scale * (of_sum + (2 * u + u * u) * (1.5 + of_sum)) + q;
  expect_just_above(scores.a_priori[0], scaled + u * (scale * 1.5 + scaled));
}

void expect_bounds_hold(const AttentionArithmetic& arithmetic, const RandomRow& row) {
  const AttentionOrders orders = everywhere("sequential");
  const std::vector<DoubleDouble> exact = exact_scores(row.view());
  ErrorSums scores, attention;
  scores.add(scores_format(arithmetic), scores_of_row(arithmetic, orders.scores, row.view()),
             exact);
  EXPECT_TRUE(scores.bounds_hold());
  attention.add(out_format(arithmetic), attention_of_row(arithmetic, orders, row.view()),
                exact_attention(row));
  EXPECT_TRUE(attention.bounds_hold());
}

// Two scores that move apart by nearly half a unit each: the smaller probability moves by e^(2Δ).
TEST(AttentionRow, ScoresThatMoveApartAreCovered) {
  const double x = 1 + 19 * 0x1p-10;
  const double y = 4 + 27 * 0x1p-8;
  AttentionArithmetic arithmetic;
  arithmetic.round_p = false;
  arithmetic.round_out = false;
  expect_bounds_hold(arithmetic, row_of(2, {x}, {y, -y}, {0, 1}));
}

// 16384 + 40 − 16384 is 0 in bfloat16: the wrong key wins, the output moves from 1 to −1, and no
// bound need exceed that by much.
TEST(AttentionRow, OutputsMoveNoFurtherThanTheValuesAreApart) {
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = softfloat::bfloat16;
  const RandomRow row = row_of(2, {1, 1, 1}, {16384, 20, 40, 0, -16384, 0}, {1, 1, 1, -1, -1, -1});
  expect_bounds_hold(arithmetic, row);
  const BoundedValues out = attention_of_row(arithmetic, everywhere("sequential"), row.view());
  EXPECT_LE(out.value[0], -0.99);
  EXPECT_LE(out.running[0], 2.1);
}

// 1/√64 rounds to 0 in e2m1.
TEST(AttentionRow, AScaleThatUnderflowsIsCovered) {
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = softfloat::e2m1;
  expect_bounds_hold(arithmetic,
                     row_of(1, std::vector<double>(64, 1.0), std::vector<double>(64, 0.0625),
                            std::vector<double>(64, 1.0)));
}

// A score of 112 is stored as 28, the largest number of e3m2.
TEST(AttentionRow, StoresThatSaturateAreCovered) {
  AttentionArithmetic arithmetic;
  arithmetic.storage = softfloat::e3m2;
  const RandomRow row = row_of(2, {28}, {4, 0}, {1, -1});
  expect_bounds_hold(arithmetic, row);
  const BoundedValues scores =
      scores_of_row(arithmetic, parse_order("sequential").value(), row.view());
  EXPECT_EQ(scores.value[0], 28);
  EXPECT_GE(scores.running[0], 84);
  EXPECT_LE(scores.running[0], 84.001);
  EXPECT_EQ(scores.a_priori[0], no_bound);
}

TEST(AttentionRow, OverflowHasNoBound) {
  RandomRow row(4, 8, 1, 1.0);
  for (double& value : row.q) value = 60000;
  for (double& value : row.k_transposed) value = 60000;
  AttentionArithmetic arithmetic;
  arithmetic.accumulator = softfloat::binary16;
  const BoundedValues scores =
      scores_of_row(arithmetic, parse_order("sequential").value(), row.view());
  for (std::size_t j = 0; j < scores.value.size(); ++j) {
    EXPECT_TRUE(std::isinf(scores.value[j]));
    EXPECT_TRUE(std::isinf(scores.running[j]));
    EXPECT_TRUE(std::isinf(scores.a_priori[j]));
  }
}

// exp(−∞) is 0: a score that overflowed downward takes no part, and the others are as without it.
TEST(AttentionRow, AScoreOfMinusInfinityHasProbabilityZero) {
  const double infinity = std::numeric_limits<double>::infinity();
  const SoftmaxOfRow with = softmax_of_row({}, parse_order("sequential").value(),
                                           std::vector<double>{1.0, -infinity, 0.5}, {});
  const SoftmaxOfRow without =
      softmax_of_row({}, parse_order("sequential").value(), std::vector<double>{1.0, 0.5}, {});
  EXPECT_EQ(with.row_sum.value, without.row_sum.value);
  EXPECT_EQ(with.p.value, (std::vector<double>{without.p.value[0], 0.0, without.p.value[1]}));
  EXPECT_EQ(with.p.running[0], no_bound);
  const ExactSoftmax exact = exact_softmax(std::vector<DoubleDouble>{1.0, -infinity, 0.5});
  EXPECT_EQ(exact.p[1], DoubleDouble(0.0));
  EXPECT_EQ(exact.p[0], exact_softmax(std::vector<DoubleDouble>{1.0, 0.5}).p[0]);
}

}  // namespace
}  // namespace kvsim
