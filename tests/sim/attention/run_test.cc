// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using test::error_of;
using test::Layer;

constexpr AttentionShape small{
    .query_heads = 4, .kv_heads = 2, .query_len = 3, .kv_len = 5, .head_dim = 8};

TEST(AttentionKernels, EachHasOneRuleASourceAndAName) {
  std::set<std::string_view> names;
  for (const AttentionKernel& kernel : attention_kernels()) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name << " twice";
    EXPECT_EQ(find_attention_kernel(kernel.name), &kernel);
    EXPECT_FALSE(kernel.source.empty() || kernel.date.empty() || kernel.device.empty());
    EXPECT_FALSE(kernel.storages.empty()) << kernel.name;
    EXPECT_EQ(kernel.family == AttentionFamily::eager, kernel.eager != nullptr) << kernel.name;
    EXPECT_EQ(kernel.family == AttentionFamily::online_tiles, kernel.tiles != nullptr);
    EXPECT_EQ(kernel.family == AttentionFamily::paged, kernel.paged != nullptr) << kernel.name;
    if (kernel.evidence == softfloat::Evidence::assumed) {
      EXPECT_FALSE(kernel.note.empty()) << kernel.name << ": says what is assumed";
    }
  }
  EXPECT_EQ(find_attention_kernel("h100-fa"), nullptr);
}

// K and V as codes, with room between the heads, give the bits of floats.
TEST(RunAttention, ReadsCodes) {
  AttentionShape shape{
      .query_heads = 4, .kv_heads = 2, .query_len = 2, .kv_len = 37, .head_dim = 64};
  for (const AttentionKernel& kernel : attention_kernels()) {
    shape.query_len = kernel.family == AttentionFamily::paged ? 1 : 2;
    for (const StorageSums& sums : kernel.storages) {
      if (sums.storage != binary16 && sums.storage != bfloat16) continue;
      const Layer layer(shape, sums.storage, 5);
      const AttentionResult expected = test::run(kernel.name, layer.problem);
      const std::int64_t head = shape.kv_len * shape.head_dim;
      const std::int64_t stride = head + 3 * shape.head_dim;
      std::vector<std::uint16_t> k(static_cast<std::size_t>(shape.kv_heads * stride), 0x7fff);
      std::vector<std::uint16_t> v = k;
      for (std::int64_t i = 0; i < shape.kv_heads * head; ++i) {
        const auto from = static_cast<std::size_t>(i);
        const auto to = static_cast<std::size_t>(i / head * stride + i % head);
        k[to] = static_cast<std::uint16_t>(test::code_of(sums.storage, layer.k[from]));
        v[to] = static_cast<std::uint16_t>(test::code_of(sums.storage, layer.v[from]));
      }
      AttentionProblem problem = layer.problem;
      problem.k = *NumberPointer::of(sums.storage, k.data());
      problem.v = *NumberPointer::of(sums.storage, v.data());
      problem.kv_head_stride = stride;
      const AttentionResult got = test::run(kernel.name, problem);
      EXPECT_EQ(test::bits_of(got.out), test::bits_of(expected.out)) << kernel.name;
      EXPECT_EQ(test::bits_of(got.lse), test::bits_of(expected.lse)) << kernel.name;
    }
  }
}

TEST(RunAttention, RefusesWhatCannotBe) {
  Layer layer(small, binary16, 1);
  const AttentionProblem good = layer.problem;
  AttentionProblem bad = good;
  bad.storage = bfloat16;
  EXPECT_EQ(error_of("v100-eager", bad),
            "kernel v100-eager with bfloat16 storage: accepted are binary16");
  bad = good;
  bad.shape.query_heads = 3;
  EXPECT_EQ(error_of("control-attention", bad),
            "3 query heads: must be a multiple of the 2 K/V heads");
  bad = good;
  bad.shape.head_dim = 0;
  EXPECT_EQ(error_of("control-attention", bad), "head_dim 0: must be 1 or more");
  bad = good;
  bad.kv_head_stride = 39;
  EXPECT_EQ(error_of("control-attention", bad),
            "kv_head_stride 39: must be 0 or at least kv_len × head_dim, 40");
  bad = good;
  bad.mask.window = -1;
  EXPECT_EQ(error_of("control-attention", bad), "window -1: must be 0 or more");
  bad = good;
  bad.mask.window = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(error_of("control-attention", bad),
            "window 9223372036854775807: must be 1099511627776 or less");
  bad = good;
  bad.launch.batch = std::int64_t{1} << 40;
  EXPECT_EQ(error_of("control-attention", bad), "batch 1099511627776: must be 1048576 or less");
  bad = good;
  bad.launch.batch = 2;
  const std::vector<std::int64_t> lengths{5, 0};
  bad.launch.kv_lens = lengths;
  EXPECT_EQ(error_of("control-attention", bad), "a length of kv_lens 0: must be 1 or more");
  bad.launch.batch = 1;
  EXPECT_EQ(error_of("control-attention", bad),
            "2 kv_lens in a launch of 1 sequences: at most one for each");
  bad = good;
  bad.shape.query_heads = std::int64_t{1} << 20;
  bad.shape.kv_heads = 1;
  bad.shape.kv_len = std::int64_t{1} << 20;
  EXPECT_EQ(error_of("control-attention", bad),
            "1048576 keys for 1048576 query heads of one K/V head: at most 4294967296 scores are "
            "accepted");
  bad = good;
  bad.mask.soft_cap = NAN;
  EXPECT_EQ(error_of("control-attention", bad), "soft cap nan: must be finite and 0 or more");
  bad = good;
  bad.launch.longest_kv_len = 4;
  EXPECT_EQ(error_of("control-attention", bad),
            "longest_kv_len 4: must be 0 or at least kv_len, 5");
  bad = good;
  bad.launch.splits = 2;
  EXPECT_EQ(error_of("v100-eager", bad), "kernel v100-eager: does not split the keys");
  bad = good;
  bad.v = nullptr;
  EXPECT_EQ(error_of("control-attention", bad), "q, k and v: all three are needed");
}

// With q = 0 all scores are equal and the output is the mean of the values seen.
TEST(Eager, AveragesUnderEqualScores) {
  Layer layer({.query_heads = 1, .kv_heads = 1, .query_len = 4, .kv_len = 4, .head_dim = 2},
              binary32, 1);
  layer.q.assign(8, 0.0F);
  layer.v = {1, 8, 3, 16, 5, 24, 7, 32};
  layer.problem.v = layer.v.data();
  layer.problem.q = layer.q.data();
  const AttentionResult result = test::run("control-attention", layer.problem);
  EXPECT_EQ(result.out[0], 1);
  EXPECT_EQ(result.out[1], 8);
  EXPECT_EQ(result.out[2], 2);
  EXPECT_EQ(result.out[3], 12);
  EXPECT_EQ(result.out[6], 4);
  EXPECT_EQ(result.out[7], 20);
  layer.problem.mask.window = 2;
  EXPECT_EQ(test::run("control-attention", layer.problem).out[6], 6);
}

TEST(Eager, SoftmaxOverNothingIsNotANumber) {
  Layer layer({.query_heads = 2, .kv_heads = 1, .query_len = 3, .kv_len = 2, .head_dim = 2},
              binary16, 1);
  const AttentionResult result = test::run("v100-eager", layer.problem);
  EXPECT_EQ(test::bits_of(result.out)[0], 0x7fc00000U);
  EXPECT_FALSE(std::isnan(result.out[2]));
}

// What is known of a GPU's exponential only within bounds is said to be so; a captured table
// settles ex2.approx, and an error of two units in the last place shows in the results.
TEST(RunAttention, SaysWhereTheExponentialIsBounded) {
  Layer layer({.query_heads = 64, .kv_heads = 1, .query_len = 1, .kv_len = 40, .head_dim = 16},
              binary16, 2);
  for (const std::string_view name : {"h100-fa3", "a100-flashinfer", "a100-vllm", "v100-eager"}) {
    EXPECT_TRUE(test::run(name, layer.problem).exp_bounded) << name;
  }
  for (const std::string_view name :
       {"torch-cpu", "llama.cpp-cpu", "control-attention", "control-attention-exact"}) {
    EXPECT_FALSE(test::run(name, layer.problem).exp_bounded) << name;
  }
  const std::vector<float> values = {1.0F, 0x1.6a09e6p+0F};  // 2^0 and 2^(1/2)
  const Result<ExpTable> table = make_exp_table(values);
  ASSERT_TRUE(table) << table.error().message;
  AttentionOptions options;
  options.exp = ExpOptions{.table = &table.value()};
  const AttentionResult settled = test::run("h100-fa3", layer.problem, options);
  EXPECT_FALSE(settled.exp_bounded);
  // Merging splits in base e takes CUDA's expf, of which the table says nothing.
  AttentionProblem split = layer.problem;
  split.launch.splits = 2;
  EXPECT_TRUE(test::run("h100-fa2", split, options).exp_bounded);
  EXPECT_FALSE(test::run("a100-flashinfer", split, options).exp_bounded);
  // Two values for each octave are a coarse exponential.
  EXPECT_NE(test::bits_of(settled.out), test::bits_of(test::run("h100-fa3", layer.problem).out));
  options.exp = ExpOptions{.ulp = 2, .seed = 1};
  const AttentionResult moved = test::run("h100-fa3", layer.problem, options);
  EXPECT_TRUE(moved.exp_bounded);
  EXPECT_NE(test::bits_of(moved.lse), test::bits_of(test::run("h100-fa3", layer.problem).lse));
  options.exp = ExpOptions{.table = &table.value(), .ulp = 2};
  EXPECT_FALSE(run_attention(test::kernel("h100-fa3"), layer.problem, options));
}

}  // namespace
}  // namespace kvsim
