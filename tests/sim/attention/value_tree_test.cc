// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/value_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;

/// What one golden file stands for.
struct Case {
  std::string_view file;
  std::string_view kernel;
  softfloat::Format storage;
  std::int64_t query_len;
  std::int64_t kv_len;
  std::int64_t head_dim;
  std::int64_t splits = 0;
  std::int64_t split_size = 0;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"eager", "v100-eager", binary16, 2, 10, 64},
      {"flash-attention-2", "a100-fa2", binary16, 1, 68, 128, 1},
      {"flash-decoding", "a100-flash-decoding", binary16, 1, 132, 256, 2},
      {"flash-attention-3", "h100-fa3", binary16, 1, 84, 256, 1},
      {"flash-attention-4", "b200-fa4", binary16, 1, 132, 64, 1},
      {"flashinfer", "a100-flashinfer", binary16, 1, 60, 256, 0, 40},
      {"triton", "mi300-fa2", binary16, 1, 68, 128},
      {"vllm-paged", "a100-vllm-v1", bfloat16, 1, 19, 64},
      {"torch-cpu", "torch-cpu", binary32, 1, 5, 64},
      {"torch-cpu-rows", "torch-cpu", binary32, 4, 5, 64},
      {"llama-cpu", "llama.cpp-cpu", binary16, 1, 3, 64},
      {"llama-cuda", "llama.cpp-cuda", binary16, 1, 68, 64},
  };
  return all;
}

AttentionProblem problem_of(const Case& c) {
  AttentionProblem problem;
  problem.shape = {.query_heads = 1,
                   .kv_heads = 1,
                   .query_len = c.query_len,
                   .kv_len = c.kv_len,
                   .head_dim = c.head_dim};
  problem.storage = c.storage;
  problem.launch.splits = c.splits;
  problem.launch.split_size = c.split_size;
  return problem;
}

std::string golden(std::string_view name) {
  std::ifstream file(std::string(KVSIM_SOURCE_DIR) + "/tests/golden/attention-trees/" +
                     std::string(name) + ".txt");
  EXPECT_TRUE(file.is_open()) << name;
  std::string unit;
  std::string text;
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view abbreviates = "U = ";
    if (line.starts_with('#')) continue;
    if (line.starts_with(abbreviates)) {
      unit = line.substr(abbreviates.size());
      continue;
    }
    for (const char c : line) {
      if (c == ' ') continue;
      if (c == 'U') {
        text += unit;
      } else {
        text += c;
      }
    }
  }
  return text;
}

TEST(ValueTree, IsTheOneDrawnByHand) {
  for (const Case& c : cases()) {
    const Result<SumTree> tree = value_tree(test::kernel(c.kernel), problem_of(c));
    ASSERT_TRUE(tree) << c.kernel << ": " << tree.error().message;
    EXPECT_EQ(to_string(tree.value()), golden(c.file)) << c.kernel;
  }
}

TEST(ValueTree, ThereIsAFileForEachKernelsFamily) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    const bool drawn = std::ranges::any_of(cases(), [&](const Case& c) {
      const AttentionKernel& other = test::kernel(c.kernel);
      return other.family == kernel.family &&
             (kernel.tiles == nullptr || other.tiles->tiles.data() == kernel.tiles->tiles.data());
    });
    EXPECT_TRUE(drawn) << kernel.name;
  }
}

// With q = 0 every p is 1, nothing is rescaled, and the division by 2^n is exact: the output is
// what the tree gives for the values.
TEST(ValueTree, GivesTheKernelsBits) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    const softfloat::Format& storage = kernel.storages.front().storage;
    // Paged attention multiplies by a p of 1/128 before it rounds.
    if (kernel.family == AttentionFamily::paged) continue;
    test::Layer layer({1, 1, 1, 256, 64}, storage, 21);
    std::fill(layer.q.begin(), layer.q.end(), 0.0F);
    if (kernel.tiles != nullptr && kernel.tiles->split.policy != SplitPolicy::never) {
      layer.problem.launch.splits = 1;
    }
    const AttentionResult result = test::run(kernel.name, layer.problem);
    const Result<SumTree> tree = value_tree(kernel, layer.problem);
    ASSERT_TRUE(tree) << kernel.name << ": " << tree.error().message;
    // llama.cpp's maximum lies 3 ln 2 above the scores: p is no power of two.
    if (kernel.tiles != nullptr && kernel.tiles->maximum_offset > 0) continue;
    const bool eager = kernel.family == AttentionFamily::eager;
    const float p = eager ? 0x1p-8F : 1.0F;
    const softfloat::Format accumulator = binary32;
    for (std::size_t d = 0; d < 64; d += 9) {
      std::vector<softfloat::Bits> a;
      std::vector<softfloat::Bits> b;
      for (std::size_t j = 0; j < 256; ++j) {
        const auto code = [&](float x) {
          return softfloat::convert(storage, binary32, softfloat::from_float(x)).bits;
        };
        a.push_back(code(p));
        b.push_back(code(layer.v[j * 64 + d]));
      }
      const Product product =
          kernel.family == AttentionFamily::llama_cpu ? Product::fused : Product::rounded;
      const Result<softfloat::Rounded> sum =
          evaluate_tree(tree.value(), product, storage, accumulator, a, b);
      ASSERT_TRUE(sum) << kernel.name << ": " << sum.error().message;
      float expected = softfloat::to_float(binary32, sum.value().bits) * (eager ? 1 : 0x1p-8F);
      if (kernel.family != AttentionFamily::llama_cpu) expected = test::rounded(storage, expected);
      EXPECT_EQ(result.out[d], expected) << kernel.name << " " << d;
    }
  }
}

TEST(ValueTree, RefusesQueriesThatAreNotThere) {
  const Result<SumTree> tree = value_tree(test::kernel("a100-fa2"), problem_of(cases()[1]), 1);
  ASSERT_FALSE(tree);
  EXPECT_EQ(tree.error().message, "query 1: accepted are 0 to 0");
}

}  // namespace
}  // namespace kvsim
