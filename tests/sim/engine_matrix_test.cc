// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Products of matrices in an order (sim/engine/matrix.h) against sum_products(), element by
/// element, at every SIMD level of this CPU and with more than one thread.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/matrix.h"
#include "sim/engine/program.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/sim/units/operand_mix.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

struct OrderCase {
  const char* order;
  Product product = Product::rounded;
  Format input = softfloat::binary16;
  Format accumulator = softfloat::binary32;
};

/// Finite numbers that overlap, cancel and vanish; `which` tells a from b.
std::vector<float> numbers(const Format& format, std::int64_t count, int which) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto kind = static_cast<oracle::Mix>(1 + i % 7 % 4);
    const auto counter = static_cast<std::uint64_t>(2 * i + which);
    out.push_back(
        softfloat::to_float(format, oracle::mixed_code(format, kind, which == 1, counter)));
  }
  return out;
}

/// b in the ways in which it may be stored: by rows or by columns, as floats or as codes.
struct StoredOperand {
  std::string name;
  bool transposed = false;
  std::int64_t stride = 0;
  std::vector<float> floats;
  std::vector<std::uint16_t> codes = {};

  [[nodiscard]] NumberPointer pointer(const Format& format) const {
    return codes.empty() ? NumberPointer(floats.data()) : *NumberPointer::of(format, codes.data());
  }
};

std::vector<StoredOperand> stored(const std::vector<float>& b, std::int64_t stride,
                                  std::int64_t terms, std::int64_t columns, const Format& format) {
  StoredOperand by_columns{"by columns", true, terms + 1, {}};
  by_columns.floats.assign(static_cast<std::size_t>(columns * by_columns.stride), 9.0F);
  for (std::int64_t k = 0; k < terms; ++k) {
    for (std::int64_t j = 0; j < columns; ++j) {
      by_columns.floats[static_cast<std::size_t>(j * by_columns.stride + k)] =
          b[static_cast<std::size_t>(k * stride + j)];
    }
  }
  std::vector<StoredOperand> out{{"by rows", false, stride, b}, by_columns};
  if (format != softfloat::bfloat16 && format != softfloat::binary16) return out;
  for (StoredOperand each : {out[0], out[1]}) {
    each.name += ", codes";
    for (const float x : each.floats) {
      each.codes.push_back(static_cast<std::uint16_t>(
          softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits));
    }
    out.push_back(each);
  }
  return out;
}

void expect_equal(const OrderCase& each, std::int64_t rows, std::int64_t terms,
                  std::int64_t columns) {
  const Result<Order> order = parse_order(each.order);
  ASSERT_TRUE(order) << order.error().message;
  const std::int64_t a_stride = terms + 3, b_stride = columns + 2, out_stride = columns + 1;
  const std::vector<float> a = numbers(each.input, rows * a_stride, 0);
  const std::vector<float> b = numbers(each.input, terms * b_stride, 1);
  MatrixProblem problem{.order = *order,
                        .product = each.product,
                        .input = each.input,
                        .accumulator = each.accumulator,
                        .rows = rows,
                        .terms = terms,
                        .columns = columns,
                        .a = a.data(),
                        .a_stride = a_stride,
                        .b = b.data(),
                        .b_stride = b_stride};
  std::vector<std::uint32_t> expected;
  const auto code = [&](float x) {
    return softfloat::convert(each.input, softfloat::binary32, softfloat::from_float(x)).bits;
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      std::vector<Bits> x, y;
      for (std::int64_t k = 0; k < terms; ++k) {
        x.push_back(code(a[static_cast<std::size_t>(i * a_stride + k)]));
        y.push_back(code(b[static_cast<std::size_t>(k * b_stride + j)]));
      }
      const Bits sum = sum_products(*order, each.product, each.input, each.accumulator, x, y).bits;
      const float value = softfloat::to_float(each.accumulator, sum);
      expected.push_back(std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value));
    }
  }
  const std::vector<StoredOperand> ways = stored(b, b_stride, terms, columns, each.input);
  const std::vector<SimdLevel> levels = list_simd_levels();
  for (std::size_t run = 0; run < ways.size() * levels.size(); ++run) {
    const SimdLevel level = levels[run / ways.size()];
    const StoredOperand& way = ways[run % ways.size()];
    problem.b = way.pointer(each.input);
    problem.b_stride = way.stride;
    problem.b_transposed = way.transposed;
    for (const int threads : {1, 3}) {
      std::vector<float> out(static_cast<std::size_t>(rows * out_stride), 7.0F);
      const Result<bool> done =
          sum_matrix(problem, out.data(), out_stride, {.threads = threads, .level = level});
      ASSERT_TRUE(done) << done.error().message;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          const float got = out[static_cast<std::size_t>(i * out_stride + j)];
          ASSERT_EQ(std::bit_cast<std::uint32_t>(got),
                    expected[static_cast<std::size_t>(i * columns + j)])
              << each.order << " at " << simd_level_name(level) << ", b " << way.name << ", "
              << rows << " × " << terms << " × " << columns << ", element (" << i << ", " << j
              << ")";
        }
        EXPECT_EQ(out[static_cast<std::size_t>(i * out_stride + columns)], 7.0F);
      }
    }
  }
}

TEST(MatrixOrders, OnUnitsEqualSumProducts) {
  const OrderCase cases[] = {
      {.order = "mma(h100.mma.f16.f32)"},
      {.order = "blocks(32)/mma(a100.mma.f16.f32)"},
      {.order = "split(3)/mma(h100.mma.f16.f32)"},
      {.order = "split(4,multiple=16,merge=reverse)/mma(h100.mma.f16.f32)"},
      {.order = "split(3,partials=bf16,running=bf16)/mma(v100.mma.f16.f32)"},
      {.order = "blocks(48,merge=butterfly,init=zero)/mma(v100.mma.f16.f32)"},
      {.order = "reverse/blocks(20)/mma(h100.mma.f16.f32)"},
      {.order = "lanes(3,2)/mma(a100.mma.f16.f32)"},
      {.order = "lanes(5,1,tail=scalar)/mma(a100.mma.f16.f32)"},
      {.order = "lanes(5,1,tail=scalar-first)/blocks(4)/mma(a100.mma.f16.f32)"},
      {.order = "blocks(24)/mma(h100.mma.f16.f16)", .accumulator = softfloat::binary16},
      {.order = "blocks(128)/mma(h100.wgmma.e4m3.f32)", .input = softfloat::e4m3},
      {.order = "split(2)/mma(h100.mma.tf32.f32)", .input = softfloat::binary32},
      {.order = "blocks(16)/mma(h100.mma.f16.f32)", .accumulator = softfloat::binary32},
  };
  for (const OrderCase& each : cases) {
    for (const auto& [rows, terms, columns] :
         {std::array<std::int64_t, 3>{5, 77, 19}, {1, 130, 3}, {9, 1, 70}, {2, 16, 1}}) {
      ASSERT_NO_FATAL_FAILURE(expect_equal(each, rows, terms, columns));
    }
  }
}

TEST(MatrixOrders, OfSingleTermsEqualSumProducts) {
  using softfloat::bfloat16;
  using softfloat::binary16;
  using softfloat::binary32;
  const OrderCase cases[] = {
      {.order = "sequential", .input = binary32},
      {.order = "sequential", .product = Product::fused, .input = binary32},
      {.order = "sequential", .product = Product::exact, .input = binary32},
      {.order = "lanes(8,2)", .product = Product::fused, .input = binary32},
      {.order = "lanes(4,4,join=butterfly,tail=scalar)", .input = binary32},
      {.order = "pairwise", .input = bfloat16},
      {.order = "blocks(16)/exact", .input = binary16},
      {.order = "split(3,partials=bf16,running=bf16)/lanes(8,1)", .input = bfloat16},
      {.order = "sequential", .input = binary16, .accumulator = binary16},
      {.order = "reverse/halving", .input = binary16, .accumulator = softfloat::bfloat16},
      {.order = "lanes(32,1,join=butterfly)", .product = Product::fused, .input = bfloat16},
      {.order = "lanes(32,1,join=halving)", .product = Product::rounded, .input = binary32},
      {.order = "lanes(64,1,join=butterfly)", .product = Product::fused, .input = binary16},
      {.order = "lanes(64,1,join=butterfly,tail=scalar)", .product = Product::fused},
  };
  for (const OrderCase& each : cases) {
    for (const auto& [rows, terms, columns] :
         {std::array<std::int64_t, 3>{5, 77, 70}, {1, 130, 3}, {9, 1, 33}, {6, 40, 150}}) {
      ASSERT_NO_FATAL_FAILURE(expect_equal(each, rows, terms, columns));
    }
  }
}

TEST(MatrixOrders, RefuseWhatCannotBe) {
  const std::vector<float> numbers(64, 1.0F);
  std::vector<float> out(64);
  MatrixProblem problem{.order = *parse_order("mma(h100.mma.f16.f32)"),
                        .input = softfloat::binary16,
                        .accumulator = softfloat::binary32,
                        .rows = 2,
                        .terms = 4,
                        .columns = 4,
                        .a = numbers.data(),
                        .a_stride = 4,
                        .b = numbers.data(),
                        .b_stride = 4,
                        .c = numbers.data(),
                        .c_stride = 4};
  ASSERT_TRUE(sum_matrix(problem, out.data(), 4));
  EXPECT_EQ(out[0], 5.0F);
  const auto message = [&](const MatrixProblem& each, std::int64_t stride) {
    const Result<bool> done = sum_matrix(each, out.data(), stride);
    return done ? std::string() : done.error().message;
  };
  EXPECT_NE(message(problem, 3), "");
  MatrixProblem other = problem;
  other.order = *parse_order("blocks(2)/mma(h100.mma.f16.f32)");
  EXPECT_NE(message(other, 4), "");  // an addend
  other.c = nullptr;
  EXPECT_EQ(message(other, 4), "");
  other.input = softfloat::bfloat16;
  EXPECT_NE(message(other, 4), "");
  other = problem;
  other.b_stride = 2;
  EXPECT_NE(message(other, 4), "");
  other = problem;
  other.rows = -1;
  EXPECT_NE(message(other, 4), "");
}

// What the memory of an order on a unit follows from: trees are merged part by part, so that at
// most one sum waits on each of their levels.
TEST(MatrixOrders, KeepFewPartialSums) {
  for (const char* merge : {"sequential", "reverse", "pairwise", "halving", "butterfly"}) {
    for (const std::uint64_t parts : {1U, 2U, 3U, 5U, 8U, 31U, 32U, 33U, 100U, 4096U}) {
      const std::string order =
          "split(" + std::to_string(parts) + ",merge=" + merge + ")/mma(h100.mma.f16.f32)";
      const engine::Program program = engine::compile_order(*parse_order(order), 8192);
      EXPECT_LE(program.slots, std::bit_width(parts - 1) + 1) << order;
    }
  }
  // One in each level of a whole tree, and the one that is added to it.
  const auto slots = [](const char* order) {
    return engine::compile_order(*parse_order(order), 8192).slots;
  };
  EXPECT_EQ(slots("split(32,merge=pairwise)/mma(h100.mma.f16.f32)"), 6);
  EXPECT_EQ(slots("split(4,merge=butterfly)/split(32,merge=halving)/mma(h100.mma.f16.f32)"), 8);
}

}  // namespace
}  // namespace kvsim
