// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using test::bits_of;
using test::Layer;

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const AttentionKernel& kernel : attention_kernels()) {
    if (kernel.family == AttentionFamily::online_tiles) all.push_back(kernel.name);
  }
  return all;
}

// Against attention in double, to the accuracy of the storage format: every rule computes softmax.
TEST(OnlineTiles, ComputesAttention) {
  for (const std::string_view name : names()) {
    for (const bool capped : {false, true}) {
      Layer layer({.query_heads = 4, .kv_heads = 2, .query_len = 5, .kv_len = 300, .head_dim = 64},
                  binary16, 7);
      layer.problem.mask = {.causal = true, .window = 200, .soft_cap = capped ? 2.0F : 0.0F};
      const AttentionResult result = test::run(name, layer.problem);
      ASSERT_EQ(result.out.size(), 4U * 5 * 64);
      for (std::int64_t head = 0; head < 4; ++head) {
        for (std::int64_t i = 0; i < 5; ++i) {
          const float* const q = layer.q.data() + (head * 5 + i) * 64;
          std::vector<double> out(64);
          double sum = 0;
          for (std::int64_t j = 300 - 5 + i - 199; j <= 300 - 5 + i; ++j) {
            const float* const k = layer.k.data() + (head / 2 * 300 + j) * 64;
            const float* const v = layer.v.data() + (head / 2 * 300 + j) * 64;
            double score = 0;
            for (int d = 0; d < 64; ++d) score += static_cast<double>(q[d]) * k[d];
            score /= 8;
            if (capped) score = 2 * std::tanh(score / 2);
            const double p = std::exp(score);
            sum += p;
            for (std::size_t d = 0; d < 64; ++d) out[d] += p * static_cast<double>(v[d]);
          }
          for (std::size_t d = 0; d < 64; ++d) {
            const auto at = static_cast<std::size_t>((head * 5 + i) * 64) + d;
            EXPECT_NEAR(result.out[at], out[d] / sum, 2e-3) << name << " " << head << " " << d;
          }
          EXPECT_NEAR(result.lse[static_cast<std::size_t>(head * 5 + i)], std::log(sum), 1e-4)
              << name;
        }
      }
    }
  }
}

TEST(OnlineTiles, RepeatedHeadsGiveWhatGroupsGive) {
  for (const std::string_view name : names()) {
    Layer grouped({.query_heads = 6, .kv_heads = 2, .query_len = 3, .kv_len = 270, .head_dim = 32},
                  binary16, 11);
    Layer repeated({.query_heads = 6, .kv_heads = 6, .query_len = 3, .kv_len = 270, .head_dim = 32},
                   binary16, 11);
    for (std::size_t head = 0; head < 6; ++head) {
      constexpr std::size_t numbers = 270 * 32;
      std::copy_n(grouped.k.begin() + static_cast<std::ptrdiff_t>(head / 3 * numbers), numbers,
                  repeated.k.begin() + static_cast<std::ptrdiff_t>(head * numbers));
      std::copy_n(grouped.v.begin() + static_cast<std::ptrdiff_t>(head / 3 * numbers), numbers,
                  repeated.v.begin() + static_cast<std::ptrdiff_t>(head * numbers));
    }
    repeated.q = grouped.q;
    repeated.problem.q = repeated.q.data();
    for (const std::int64_t splits : {1, 3}) {
      if (test::kernel(name).tiles->split.policy == SplitPolicy::never && splits > 1) continue;
      grouped.problem.launch.splits = splits;
      repeated.problem.launch.splits = splits;
      const AttentionResult a = test::run(name, grouped.problem);
      const AttentionResult b = test::run(name, repeated.problem);
      EXPECT_EQ(bits_of(a.out), bits_of(b.out)) << name;
      EXPECT_EQ(bits_of(a.lse), bits_of(b.lse)) << name;
    }
  }
}

// Three queries for two keys: the first stands before both.
TEST(OnlineTiles, QueriesThatSeeNothingGiveZero) {
  for (const std::string_view name : names()) {
    Layer layer({.query_heads = 2, .kv_heads = 1, .query_len = 3, .kv_len = 2, .head_dim = 16},
                binary16, 5);
    const AttentionResult result = test::run(name, layer.problem);
    for (const std::size_t head : {0U, 1U}) {
      for (std::size_t d = 0; d < 16; ++d) {
        EXPECT_EQ(bits_of(result.out)[head * 48 + d], 0U) << name;
      }
      EXPECT_EQ(result.lse[head * 3], -std::numeric_limits<float>::infinity()) << name;
      EXPECT_NE(result.out[head * 48 + 16], 0) << name;
    }
  }
}

TEST(OnlineTiles, ThreadsAndSimdLevelsChangeNothing) {
  for (const std::string_view name : names()) {
    Layer layer({.query_heads = 4, .kv_heads = 2, .query_len = 2, .kv_len = 150, .head_dim = 24},
                binary16, 3);
    if (test::kernel(name).tiles->split.policy != SplitPolicy::never) {
      layer.problem.launch.split_size = 40;
    }
    const AttentionResult one = test::run(name, layer.problem);
    for (const SimdLevel level : list_simd_levels()) {
      for (const int threads : {1, 3}) {
        AttentionOptions options;
        options.engine = {.threads = threads, .level = level};
        const AttentionResult other = test::run(name, layer.problem, options);
        EXPECT_EQ(bits_of(one.out), bits_of(other.out)) << name << simd_level_name(level);
        EXPECT_EQ(bits_of(one.lse), bits_of(other.lse)) << name << simd_level_name(level);
      }
    }
  }
}

// With q = 0 every p is 1 and nothing is rescaled: out is the sum of v over 2^7 keys ÷ 2^7. 2^60
// hides what is added before −2^60, so that the ones that are left tell what comes after it.
TEST(OnlineTiles, WalksFromTheLastBlockToTheFirst) {
  Layer layer({.query_heads = 1, .kv_heads = 1, .query_len = 1, .kv_len = 128, .head_dim = 128},
              bfloat16, 1);
  std::fill(layer.q.begin(), layer.q.end(), 0.0F);
  std::fill(layer.v.begin(), layer.v.end(), 1.0F);
  const auto put = [&](std::int64_t key, float value) {
    layer.v[static_cast<std::size_t>(key * 128)] = value;
  };
  put(64, 0x1p60F);   // first key of the block that is visited first
  put(32, -0x1p60F);  // of the other; the unit takes 8 terms at a time
  layer.problem.launch.splits = 1;
  const AttentionResult fa2 = test::run("a100-fa2", layer.problem);
  EXPECT_EQ(fa2.block_columns, 64);
  EXPECT_EQ(fa2.out[0], 24.0F / 128);  // keys 40 … 63
  EXPECT_EQ(fa2.out[1], 1);
  // One block of 128: 2^60 comes last.
  const AttentionResult one_block = test::run("a100-flash-decoding", layer.problem);
  EXPECT_EQ(one_block.block_columns, 128);
  EXPECT_EQ(one_block.out[0], 56.0F / 128);  // keys 72 … 127
}

}  // namespace
}  // namespace kvsim
