// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Products of matrices on units in lanes (sim/engine/matrix.h) against unit_dot(), at every SIMD
/// level of this CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/engine/unit_plan.h"
#include "tests/sim/units/codes.h"
#include "tests/sim/units/matrix_cases.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

Bits sign(const Format& format, bool negative) { return negative ? format.sign_bit() : Bits{0}; }

/// A shape of at most `largest` rows, and 10 times as many terms and 7 times as many columns.
MatrixShape random_shape(std::uint64_t seed, std::int64_t largest) {
  const auto from = [&](std::uint64_t i, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(oracle::mix(seed * 16 + i) %
                                           static_cast<std::uint64_t>(high - low + 1));
  };
  return {.rows = from(0, 1, largest),
          .terms = from(1, 1, largest * 10),
          .columns = from(2, 1, largest * 7),
          .gap = from(3, 0, 5),
          .b_transposed = from(4, 0, 1) == 1,
          .has_addend = from(5, 0, 3) != 0};
}

TEST(UnitMatrix, EqualsUnitDotForEveryUnit) {
  std::uint64_t seed = 1;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!engine_takes(unit)) continue;
    for (std::uint64_t kind = 0; kind <= oracle::mixes; ++kind, ++seed) {
      const MatrixCase each = matrix_case(unit, random_shape(seed, 4), mixed_numbers(seed, kind));
      ASSERT_TRUE(levels_agree(unit, each, "kind " + std::to_string(kind)));
    }
  }
}

TEST(UnitMatrix, EqualsUnitDotForEveryOption) {
  std::uint64_t seed = 1000;
  for (const MatrixUnit& row : matrix_units()) {
    if (!engine_takes(row)) continue;
    for (const UnitOption& option : row.options) {
      for (const int value : option.accepted) {
        const std::string text = std::string(row.name) + "(" +
                                 std::string(to_string(option.parameter)) + "=" +
                                 parameter_text(option.parameter, value) + ")";
        const Result<MatrixUnit> unit = parse_matrix_unit(text);
        ASSERT_TRUE(unit) << unit.error().message;
        for (const std::uint64_t kind : {2U, 3U, 5U}) {
          ++seed;
          const MatrixCase each =
              matrix_case(*unit, random_shape(seed, 3), mixed_numbers(seed, kind));
          ASSERT_TRUE(levels_agree(*unit, each, "kind " + std::to_string(kind)));
        }
      }
    }
  }
}

TEST(UnitMatrix, EqualsUnitDotForEveryShape) {
  const MatrixUnit unit = *find_matrix_unit("h100.mma.f16.f32");
  std::uint64_t seed = 5000;
  for (std::int64_t rows = 1; rows <= 9; ++rows) {
    for (const std::int64_t columns : {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 70}) {
      ++seed;
      const auto terms = static_cast<std::int64_t>(1 + oracle::mix(seed) % 35);
      const MatrixShape shape{.rows = rows,
                              .terms = terms,
                              .columns = columns,
                              .gap = static_cast<std::int64_t>(seed % 3),
                              .b_transposed = oracle::mix(seed) % 2 == 0};
      const MatrixCase each = matrix_case(unit, shape, mixed_numbers(seed, oracle::mixes));
      ASSERT_TRUE(levels_agree(unit, each, "shape"));
    }
  }
}

// Sixteen products of 2^27 units of Hopper just fit an int32, and do not with the addend; two
// groups of sixteen do not. Larger numbers make binary16 results, and sums of them, infinite.
TEST(UnitMatrix, HoldsTheLargestSums) {
  for (const MatrixUnit& unit : matrix_units()) {
    if (!engine_takes(unit) || unit.operation != UnitOperation::t_fdpa) continue;
    for (const int exponent : {0, 99}) {
      for (const bool negative : {false, true}) {
        for (const std::uint64_t addend : {0U, 1U, 3U}) {
          const auto number = [&](const Format& format, int which, std::uint64_t counter) {
            const int top = std::min(exponent, format.emax() - 1);
            // All bits of the significand, at 2^top; products at 2^(2 × top).
            const Bits largest = power_of_two(format, which == 2 ? std::min(2 * top, 14) : top) |
                                 format.trailing_mask();
            if (which == 1) return largest;
            if (which == 0)
              return counter % 9 == 8 ? largest - 1 : largest | sign(format, negative);
            const Bits c = addend == 1 ? largest : largest - 1;
            return addend == 0 ? Bits{0} : c | sign(format, negative != (addend == 3));
          };
          const MatrixShape shape{.rows = 5, .terms = 34, .columns = 5};
          ASSERT_TRUE(levels_agree(unit, matrix_case(unit, shape, number), "largest"));
        }
      }
    }
  }
}

// Zeros of both signs, whole blocks of them, and sums that cancel: which zero comes out.
TEST(UnitMatrix, KeepsTheSignsOfZeros) {
  for (const MatrixUnit& unit : matrix_units()) {
    if (!engine_takes(unit)) continue;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto number = [&](const Format& format, int which, std::uint64_t counter) {
        const std::uint64_t word = oracle::mix(seed * 100000 + counter * 3 + 7);
        const bool block_is_zero = oracle::mix(counter / 48 + seed) % 2 == 0;
        const Bits zero = sign(format, word % 2 == 0);
        if (which == 2) return seed == 0 ? sign(format, true) : zero;
        if (block_is_zero || word % 3 == 0) return which == 0 ? sign(format, seed % 2 == 0) : zero;
        // The smallest numbers: a binary16 result of a negative product is −0.
        return (word % 16 == 1 ? Bits{1} : power_of_two(format, 0)) | zero;
      };
      const MatrixShape shape{.rows = 5, .terms = 40, .columns = 9};
      ASSERT_TRUE(levels_agree(unit, matrix_case(unit, shape, number), "zeros"));
    }
  }
}

// A binary16 result of −2^-40 is −0. It stays where all later products are −0.
TEST(UnitMatrix, KeepsANegativeZeroOnTheWay) {
  constexpr std::int64_t terms = 48, columns = 9;  // whole blocks: no zeros are filled in
  for (const char* name :
       {"v100.mma.f16.f16", "a100.mma.f16.f16", "h100.mma.f16.f16", "h100.wgmma.f16.f16"}) {
    const MatrixUnit unit = *find_matrix_unit(name);
    const auto number = [&](const Format& format, int which, std::uint64_t counter) {
      const auto i = static_cast<std::int64_t>(counter) / 3;
      if (which == 0) return i % terms == 0 ? power_of_two(format, -20) : Bits{0};
      if (which == 2) return Bits{0};
      const std::int64_t k = i / columns, j = i % columns;
      if (k == 0) return power_of_two(format, -20, true);
      return power_of_two(format, 0, j % 2 == 1 || k < terms - 1);
    };
    const MatrixCase each =
        matrix_case(unit, {.rows = 5, .terms = terms, .columns = columns}, number);
    const std::vector<std::uint32_t> expected = expected_bits(unit, each);
    EXPECT_EQ(expected[0], 0U) << name;
    EXPECT_EQ(expected[1], 0x80000000U) << name;
    ASSERT_TRUE(levels_agree(unit, each, "negative zero"));
  }
}

// Attention's weights in bfloat16: one near 1, most of them far below, some subnormal.
TEST(UnitMatrix, FindsTheLargestExponentAmongTinyNumbers) {
  for (const char* name : {"h100.mma.bf16.f32", "a100.mma.bf16.f32", "h100.mma.tf32.f32"}) {
    const MatrixUnit unit = *find_matrix_unit(name);
    for (const int spread : {20, 60, 126, 140}) {
      const auto number = [&](const Format& format, int which, std::uint64_t counter) {
        const std::uint64_t word = oracle::mix(counter * 7 + static_cast<std::uint64_t>(spread));
        const int exponent = -static_cast<int>(word % static_cast<std::uint64_t>(spread));
        if (which == 0 && word % 5 == 0) return Bits{0};
        const int lowest = format.emin() - (unit.input.precision - 1);
        const Bits power =
            power_of_two(format, which == 1 ? exponent / 4 : std::max(exponent, lowest));
        return power | sign(format, word % 64 > 31);
      };
      const MatrixShape shape{.rows = 6, .terms = 64, .columns = 33, .has_addend = spread != 60};
      ASSERT_TRUE(levels_agree(unit, matrix_case(unit, shape, number), "tiny"));
    }
  }
}

// What a fall back to softfloat would hide from every other test here.
TEST(UnitMatrix, LanesComputeTheUnitsOfKernels) {
  using engine::UnitPath;
  const auto path = [](const char* name) {
    return engine::plan_unit(*find_matrix_unit(name)).path;
  };
  for (const char* name :
       {"v100.mma.f16.f32", "a100.mma.f16.f16", "a100.mma.bf16.f32", "h100.mma.f16.f32",
        "h100.wgmma.bf16.f32", "h100.wgmma.e4m3.f32", "h100.wgmma.e5m2.f16", "h100.mma.tf32.f32",
        "h100.mma.e4m3.f16", "b200.tcgen05.f16.f32", "b200.tcgen05.e4m3.f32",
        "b200.tcgen05.e2m1.f32"}) {
    EXPECT_EQ(path(name), UnitPath::truncated) << name;
  }
  for (const char* name : {"mi300.mfma.f16.f32", "mi300.mfma.bf16.f32", "mi300.mfma.xf32.f32"}) {
    EXPECT_EQ(path(name), UnitPath::rounded_down) << name;
  }
  for (const char* name : {"x86.vdpbf16ps.bf16.f32", "mi300.mfma.f32.f32"}) {
    EXPECT_EQ(path(name), UnitPath::fused) << name;
  }
  EXPECT_EQ(path("mi300.mfma.e4m3fnuz.f32"), UnitPath::softfloat);
}

TEST(UnitMatrix, ThreadsChangeNothing) {
  const MatrixUnit unit = *find_matrix_unit("a100.mma.f16.f32");
  for (const MatrixShape& shape :
       {MatrixShape{.rows = 150, .terms = 40, .columns = 7},
        MatrixShape{.rows = 3, .terms = 40, .columns = 333, .b_transposed = true}}) {
    const MatrixCase each = matrix_case(unit, shape, mixed_numbers(77, oracle::mixes));
    const std::vector<std::uint32_t> one = engine_bits(each.problem(unit), {.threads = 1});
    for (const int threads : {2, 3, 8}) {
      EXPECT_EQ(engine_bits(each.problem(unit), {.threads = threads}), one) << threads;
    }
  }
}

TEST(UnitMatrix, AddsInPlace) {
  const MatrixUnit unit = *find_matrix_unit("h100.mma.f16.f32");
  MatrixCase each = matrix_case(unit, {.rows = 6, .terms = 32, .columns = 20},
                                mixed_numbers(5, oracle::first_case(oracle::Mix::near_one)));
  const std::vector<std::uint32_t> expected = expected_bits(unit, each);
  UnitProblem problem = each.problem(unit);
  ASSERT_TRUE(multiply_on_unit(problem, each.c.data(), each.c_stride));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(each.c[i]), expected[i]) << i;
  }
}

TEST(UnitMatrix, RefusesWhatCannotBe) {
  const MatrixUnit unit = *find_matrix_unit("h100.mma.f16.f32");
  const MatrixCase each = matrix_case(unit, {.rows = 2, .terms = 4, .columns = 3},
                                      mixed_numbers(1, oracle::first_case(oracle::Mix::near_one)));
  std::vector<float> out(64);
  const auto message = [&](const UnitProblem& problem, std::int64_t stride = 3,
                           const EngineOptions& options = {}) {
    const Result<bool> done = multiply_on_unit(problem, out.data(), stride, options);
    return done ? std::string("done") : done.error().message;
  };
  const UnitProblem good = each.problem(unit);
  EXPECT_EQ(message(good), "done");
  UnitProblem bad = good;
  bad.unit = nullptr;
  EXPECT_EQ(message(bad), "matrix unit: none given");
  bad.unit = find_matrix_unit("h100.mma.f64.f64");
  EXPECT_EQ(message(bad),
            "matrix unit h100.mma.f64.f64: the engine takes units whose numbers are all floats");
  bad.unit = find_matrix_unit("b200.tcgen05.mx_e4m3.f32");
  EXPECT_EQ(message(bad),
            "matrix unit b200.tcgen05.mx_e4m3.f32: the engine takes units without block scales");
  bad = good;
  bad.columns = -1;
  EXPECT_EQ(message(bad), "2 rows × 4 terms × -1 columns: all must be 0 or more");
  bad = good;
  bad.b_stride = 2;
  EXPECT_EQ(message(bad), "stride 2 of b: must be at least 3");
  EXPECT_EQ(message(good, 2), "stride 2 of the result: must be at least 3");
  EXPECT_EQ(message(good, 3, {.threads = 0}), "0 threads: accepted are 1 to 1024");
  bad = good;
  bad.rows = 0;
  EXPECT_EQ(message(bad), "done");
  bad = good;
  bad.terms = 0;  // the addend itself
  EXPECT_EQ(message(bad), "done");
  EXPECT_EQ(out[0], each.c[0]);
}

}  // namespace
}  // namespace kvsim
