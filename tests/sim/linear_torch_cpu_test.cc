// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// What is special about PyTorch's products on a CPU.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/linear.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

using softfloat::binary32;

std::vector<float> numbers(std::uint64_t stream, std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = philox_bits(1, stream, static_cast<std::uint64_t>(i));
    all.push_back(static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F);
  }
  return all;
}

// One output of several rows: the rows take the place of the outputs.
TEST(LinearTorchCpu, OneOutputExchangesRowsAndOutputs) {
  constexpr std::int64_t terms = 37;
  for (const std::int64_t rows : {2, 3, 4, 5, 7, 9}) {
    const std::vector<float> x = numbers(1, rows * terms);
    const std::vector<float> w = numbers(2, terms);
    LinearProblem column{.rows = rows,
                         .outputs = 1,
                         .terms = terms,
                         .storage = binary32,
                         .x = x.data(),
                         .x_stride = terms,
                         .w = w.data(),
                         .w_stride = 1};
    LinearProblem turned = column;
    turned.rows = 1;
    turned.outputs = rows;
    turned.x = w.data();
    turned.w = x.data();
    turned.w_by_outputs = true;
    turned.w_stride = terms;
    for (const char* name : {"torch-cpu-linear", "torch-cpu-avx2-linear"}) {
      std::vector<float> out(index(rows));
      std::vector<float> expected(index(rows));
      ASSERT_TRUE(apply_linear(*find_linear_kernel(name), column, out.data(), 1));
      ASSERT_TRUE(apply_linear(*find_linear_kernel(name), turned, expected.data(), rows));
      EXPECT_EQ(out, expected) << name << ", " << rows << " rows";
    }
  }
}

// 2^24 and two blocks of 1: the bias takes each of them and rounds it away, the other way round
// they would be 2 and reach it.
TEST(LinearTorchCpu, BiasComesBeforeTheBlocks) {
  std::vector<float> x(4 * 384, 0);
  std::vector<float> w(384 * 12, 0);
  for (std::int64_t i = 0; i < 4; ++i) x[index(i * 384)] = x[index(i * 384 + 192)] = 1;
  for (std::int64_t j = 0; j < 12; ++j) w[index(j)] = w[index(192 * 12 + j)] = 1;
  const std::vector<float> bias(12, 0x1p24F);
  LinearProblem problem{.rows = 4,
                        .outputs = 12,
                        .terms = 384,
                        .storage = binary32,
                        .x = x.data(),
                        .x_stride = 384,
                        .w = w.data(),
                        .w_stride = 12,
                        .bias = bias.data()};
  std::vector<float> out(48);
  for (const char* name : {"torch-cpu-linear", "torch-cpu-avx2-linear"}) {
    ASSERT_TRUE(apply_linear(*find_linear_kernel(name), problem, out.data(), 12));
    EXPECT_EQ(out, std::vector<float>(48, 0x1p24F)) << name;
  }
  ASSERT_TRUE(apply_linear(*find_linear_kernel("control-linear"), problem, out.data(), 12));
  EXPECT_EQ(out, std::vector<float>(48, 0x1p24F + 2));
}

}  // namespace
}  // namespace kvsim
