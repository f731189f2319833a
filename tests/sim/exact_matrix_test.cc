// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exact_matrix.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/engine/binary64_matrix.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

constexpr std::int64_t rows = 5;
constexpr std::int64_t terms = 643;
constexpr std::int64_t columns = 131;

/// Any finite float for kind 0; numbers near 1 with cancellation for kind 1.
float number(std::uint64_t bits, int kind) {
  if (kind == 0) {
    const auto code = static_cast<std::uint32_t>(bits);
    return std::bit_cast<float>((code & 0x7f800000U) == 0x7f800000U ? code & 0xbfffffffU : code);
  }
  const float magnitude = 0.5F + static_cast<float>(bits >> 40) * 0x1p-24F;
  return (bits & 1) != 0 ? -magnitude : magnitude;
}

struct Operands {
  std::vector<float> a;
  std::vector<float> b;

  explicit Operands(int kind) : a(index(rows * terms)), b(index(terms * columns)) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = number(philox_bits(1, 1, i), kind);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = number(philox_bits(1, 2, i), kind);
    for (std::int64_t k = 1; k < terms; k += 2) {  // column 0: everything cancels
      b[index(k * columns)] = b[index((k - 1) * columns)];
      a[index(k)] = -a[index(k - 1)];
    }
    b[index((terms - 1) * columns)] = 0;
  }
};

float mpfr_sum(const Operands& operands, std::int64_t i, std::int64_t j) {
  mpfr_t sum;
  mpfr_t product;
  mpfr_init2(sum, 1200);
  mpfr_init2(product, 64);
  mpfr_set_zero(sum, 1);
  for (std::int64_t k = 0; k < terms; ++k) {
    mpfr_set_flt(product, operands.a[index(i * terms + k)], MPFR_RNDN);
    mpfr_mul_d(product, product, operands.b[index(k * columns + j)], MPFR_RNDN);
    EXPECT_EQ(mpfr_add(sum, sum, product, MPFR_RNDN), 0) << "not exact";
  }
  const float value = mpfr_get_flt(sum, MPFR_RNDN);
  mpfr_clear(sum);
  mpfr_clear(product);
  return value;
}

TEST(ExactMatrix, RoundsTheExactSumOnce) {
  for (const int kind : {0, 1}) {
    const Operands operands(kind);
    const MatrixProblem problem{.order = parse_order("exact").value(),
                                .input = softfloat::binary32,
                                .accumulator = softfloat::binary32,
                                .rows = rows,
                                .terms = terms,
                                .columns = columns,
                                .a = operands.a.data(),
                                .a_stride = terms,
                                .b = operands.b.data(),
                                .b_stride = columns};
    for (const SimdLevel level : list_simd_levels()) {
      std::vector<float> out(index(rows * columns));
      ASSERT_TRUE(exact_matrix(problem, out.data(), columns, {.threads = 2, .level = level}));
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(out[index(i * columns + j)]),
                    std::bit_cast<std::uint32_t>(mpfr_sum(operands, i, j)))
              << kind << ": " << i << ", " << j << " at " << simd_level_name(level);
        }
      }
      EXPECT_EQ(out[0], 0);
    }
  }
}

// Just above and just below the middle of two floats, by less than binary64 sums can hold.
TEST(ExactMatrix, DecidesBesideTies) {
  const float a[] = {1, 0x1p-24F, 0x1p-60F, 1, 0x1p-24F, -0x1p-60F, 1, 0x1p-24F, 0};
  const float b[] = {1, 1, 1};
  const MatrixProblem problem{.order = parse_order("exact").value(),
                              .input = softfloat::binary32,
                              .accumulator = softfloat::binary32,
                              .rows = 3,
                              .terms = 3,
                              .columns = 1,
                              .a = a,
                              .a_stride = 3,
                              .b = b,
                              .b_stride = 1};
  float out[3] = {};
  ASSERT_TRUE(exact_matrix(problem, out, 1));
  EXPECT_EQ(out[0], 1 + 0x1p-23F);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 1);
}

TEST(ExactMatrix, SpecialValuesAndErrors) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float a[] = {infinity, 1, 0, -0.0F};
  const float b[] = {1, 0, -infinity, 1};
  MatrixProblem problem{.order = parse_order("exact").value(),
                        .input = softfloat::binary32,
                        .accumulator = softfloat::binary32,
                        .rows = 2,
                        .terms = 2,
                        .columns = 2,
                        .a = a,
                        .a_stride = 2,
                        .b = b,
                        .b_stride = 2};
  float out[4] = {};
  ASSERT_TRUE(exact_matrix(problem, out, 2));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[0]), 0x7fc00000U);  // ∞ − ∞
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[1]), 0x7fc00000U);  // ∞ × 0
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[2]), 0x7fc00000U);  // −0 × −∞
  EXPECT_EQ(std::bit_cast<std::uint32_t>(out[3]), 0U);
  problem.accumulator = softfloat::binary16;
  EXPECT_FALSE(exact_matrix(problem, out, 2));
  problem.accumulator = softfloat::binary32;
  problem.a_stride = 1;
  EXPECT_FALSE(exact_matrix(problem, out, 2));
}

TEST(Binary64Matrix, BlocksOf64AtEveryLevel) {
  const Operands operands(1);
  std::vector<double> x(index(rows * terms));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 / (3 + static_cast<double>(i));
  for (const SimdLevel level : list_simd_levels()) {
    std::vector<double> out(index(rows * columns));
    std::vector<double> squares(index(columns));
    multiply_binary64({.rows = rows,
                       .terms = terms,
                       .columns = columns,
                       .x = x.data(),
                       .w = operands.b.data(),
                       .w_stride = columns,
                       .squares = squares.data()},
                      out.data(), {.threads = 2, .level = level});
    for (std::int64_t i = 0; i <= rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double total = 0;
        for (std::int64_t begin = 0; begin < terms; begin += 64) {
          double block = 0;
          for (std::int64_t k = begin; k < std::min<std::int64_t>(terms, begin + 64); ++k) {
            const double w = operands.b[index(k * columns + j)];
            block += (i == rows ? w : x[index(i * terms + k)]) * w;
          }
          total += block;
        }
        ASSERT_EQ(i == rows ? squares[index(j)] : out[index(i * columns + j)], total)
            << i << ", " << j << " at " << simd_level_name(level);
      }
    }
  }
}

}  // namespace
}  // namespace kvsim
