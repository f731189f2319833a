// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Every row of attention_kernels() against its plain version: the same bits on random layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "sim/attention/kernel.h"
#include "softfloat/formats.h"
#include "tests/sim/attention/plain/kernels.h"
#include "tests/sim/attention/plain_compare.h"

namespace kvsim {
namespace {

class PlainEquality : public testing::TestWithParam<std::size_t> {};

TEST_P(PlainEquality, HoldsOnRandomShapes) {
  const plain::Kernel& kernel = plain::kernels()[GetParam()];
  constexpr std::uint64_t count = 200;
  int shown = 0;
  int wrong = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const plain::Problem p = random_problem(kernel.limits, GetParam(), index);
    const std::string text = test::compare(kernel, p);
    if (text.empty()) continue;
    ++wrong;
    if (++shown <= 3) {
      ADD_FAILURE() << kernel.name << ", shape " << index << ": " << test::describe(p) << ": "
                    << text;
    }
  }
  EXPECT_EQ(wrong, 0) << kernel.name << " of " << count;
}

std::string test_name(const testing::TestParamInfo<std::size_t>& info) {
  std::string name(plain::kernels()[info.param].name);
  for (char& c : name) {
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(AllKernels, PlainEquality,
                         testing::Range(std::size_t{0}, plain::kernels().size()), test_name);

// More rows than a tile of FlashAttention-3 or -4 holds, in groups that tiles cut: each tile
// divides the blocks that its own rows see.
TEST(PlainEquality, HoldsWhereTilesOfRowsDivideTheirBlocks) {
  for (const plain::Kernel& kernel : plain::kernels()) {
    if (kernel.name != "h100-fa3" && kernel.name != "b200-fa4") continue;
    for (const std::int64_t window : {0, 60}) {
      for (const std::int64_t group : {5, 8}) {
        plain::Limits limits = kernel.limits;
        const std::array<std::int64_t, 1> head_dim{16};
        limits.head_dims = head_dim;
        plain::Problem p = random_problem(limits, 1000, static_cast<std::uint64_t>(group));
        p.heads = group;
        p.kv_heads = 1;
        p.query_len = 60;
        p.kv_len = 300;
        p.causal = true;
        p.window = window;
        p.batch = 1;
        p.forced_splits = 3;
        p.split_size = 0;
        p.longest_kv_len = 0;
        redraw_numbers(p, 1000, static_cast<std::uint64_t>(window + group));
        EXPECT_EQ(test::compare(kernel, p), "") << kernel.name << ": " << test::describe(p);
      }
    }
  }
}

/// Equal probabilities of values that cancel each other: the outputs are nothing but rounding.
void cancel_values(plain::Problem& p) {
  std::ranges::fill(p.q, 0.0F);
  const auto keys = static_cast<std::size_t>(p.kv_len);
  const auto d = static_cast<std::size_t>(p.head_dim);
  for (std::size_t i = 0; i < p.v.size(); ++i) {
    const std::size_t j = i / d % keys;
    const std::size_t other = i + (keys - 1 - j) * d - j * d;
    if (j < keys / 2) {
      p.v[i] = std::ldexp(p.v[i], static_cast<int>(j % 23) - 11);
    } else {
      p.v[i] = j == other / d % keys ? 0.0F : -p.v[other];
    }
  }
}

// PyTorch's products of a batch change their order above 4,096 multiply-adds.
TEST(PlainEquality, HoldsAroundTheLimitOfSmallBatches) {
  const auto kernel = std::ranges::find(plain::kernels(), "torch-cpu-eager", &plain::Kernel::name);
  ASSERT_NE(kernel, plain::kernels().end());
  const std::array<softfloat::Format, 1> storage{softfloat::bfloat16};
  plain::Limits limits = kernel->limits;
  limits.storages = storage;
  limits.soft_cap = false;
  for (std::int64_t index = 0; index < 60; ++index) {
    plain::Problem p = random_problem(limits, 1001, static_cast<std::uint64_t>(index));
    p.batch = 2;
    p.heads = p.kv_heads = 2;
    p.query_len = 1;
    p.head_dim = 16;
    p.kv_len = 34 + index;
    p.window = p.longest_kv_len = 0;
    p.kv_lens.clear();
    redraw_numbers(p, 1001, static_cast<std::uint64_t>(index));
    cancel_values(p);
    EXPECT_EQ(test::compare(*kernel, p), "") << test::describe(p);
  }
}

// A row without a plain version would be a row without a second opinion.
TEST(PlainEquality, CoversEveryRow) {
  for (const AttentionKernel& row : attention_kernels()) {
    bool found = false;
    for (const plain::Kernel& kernel : plain::kernels()) found |= kernel.name == row.name;
    EXPECT_TRUE(found) << row.name;
  }
}

}  // namespace
}  // namespace kvsim
