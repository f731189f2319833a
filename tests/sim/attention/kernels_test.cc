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

/// What holds for every attention kernel.
namespace kvsim {
namespace {

using softfloat::binary16;
using test::bits_of;
using test::Layer;

/// Kernels of more than one query, or only those that take one.
std::vector<std::string_view> names(bool decode_only) {
  std::vector<std::string_view> all;
  for (const AttentionKernel& kernel : attention_kernels()) {
    if ((kernel.family == AttentionFamily::paged) == decode_only) all.push_back(kernel.name);
  }
  return all;
}

bool splits_keys(std::string_view name) {
  const TileRule* const rule = test::kernel(name).tiles;
  return rule != nullptr && rule->split.policy != SplitPolicy::never;
}

/// Attention in double: outputs by row, and after them their lse.
std::vector<double> plain_attention(const Layer& layer) {
  const AttentionShape& shape = layer.problem.shape;
  const AttentionMask& mask = layer.problem.mask;
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  std::vector<double> all;
  std::vector<double> log_sums;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    for (std::int64_t i = 0; i < shape.query_len; ++i) {
      const float* const q = layer.q.data() + (head * shape.query_len + i) * shape.head_dim;
      const std::int64_t position = shape.kv_len - shape.query_len + i;
      const std::int64_t last = mask.causal ? position : shape.kv_len - 1;
      const std::int64_t first =
          mask.window > 0 ? std::max<std::int64_t>(0, position - mask.window + 1) : 0;
      std::vector<double> out(dim);
      double sum = 0;
      for (std::int64_t j = first; j <= last; ++j) {
        const std::int64_t at = (head / shape.group() * shape.kv_len + j) * shape.head_dim;
        double score = 0;
        for (std::size_t d = 0; d < dim; ++d) {
          score += static_cast<double>(q[d]) * (layer.k.data() + at)[d];
        }
        score /= std::sqrt(static_cast<double>(shape.head_dim));
        if (mask.soft_cap > 0) {
          score = static_cast<double>(mask.soft_cap) * std::tanh(score / mask.soft_cap);
        }
        const double p = std::exp(score);
        sum += p;
        for (std::size_t d = 0; d < dim; ++d) {
          out[d] += p * static_cast<double>((layer.v.data() + at)[d]);
        }
      }
      for (const double x : out) all.push_back(x / sum);
      log_sums.push_back(std::log(sum));
    }
  }
  all.insert(all.end(), log_sums.begin(), log_sums.end());
  return all;
}

void expect_attention(std::string_view name, const Layer& layer) {
  const std::vector<double> expected = plain_attention(layer);
  const AttentionResult result = test::run(name, layer.problem);
  double furthest = 0;
  for (std::size_t i = 0; i < result.out.size(); ++i) {
    furthest = std::max(furthest, std::abs(static_cast<double>(result.out[i]) - expected[i]));
  }
  EXPECT_LT(furthest, 4e-3) << name;
  for (std::size_t i = 0; i < result.lse.size(); ++i) {
    // llama.cpp on CUDA rounds the scaled query to binary16.
    EXPECT_NEAR(result.lse[i], expected[result.out.size() + i], 5e-4) << name;
  }
}

// Against attention in double, to the accuracy of the storage format.
TEST(AttentionKernels, ComputeAttention) {
  for (const bool capped : {false, true}) {
    Layer layer({.query_heads = 4, .kv_heads = 2, .query_len = 5, .kv_len = 300, .head_dim = 64},
                binary16, 7);
    layer.problem.mask = {.causal = true, .window = 200, .soft_cap = capped ? 2.0F : 0.0F};
    for (const std::string_view name : names(false)) expect_attention(name, layer);
  }
  Layer layer({.query_heads = 4, .kv_heads = 2, .query_len = 1, .kv_len = 700, .head_dim = 48},
              binary16, 8);
  layer.problem.launch.cpu_threads = 3;
  for (const bool decode_only : {false, true}) {
    for (const std::string_view name : names(decode_only)) expect_attention(name, layer);
  }
}

TEST(AttentionKernels, RepeatedHeadsGiveWhatGroupsGive) {
  for (const std::int64_t queries : {1, 3}) {
    for (const bool decode_only : {false, true}) {
      if (decode_only && queries > 1) continue;
      for (const std::string_view name : names(decode_only)) {
        Layer grouped({6, 2, queries, 270, 32}, binary16, 11);
        Layer repeated({6, 6, queries, 270, 32}, binary16, 11);
        for (std::ptrdiff_t head = 0; head < 6; ++head) {
          constexpr std::ptrdiff_t numbers = 270 * 32;
          std::copy_n(grouped.k.begin() + head / 3 * numbers, numbers,
                      repeated.k.begin() + head * numbers);
          std::copy_n(grouped.v.begin() + head / 3 * numbers, numbers,
                      repeated.v.begin() + head * numbers);
        }
        repeated.q = grouped.q;
        repeated.problem.q = repeated.q.data();
        for (const std::int64_t splits : {1, 3}) {
          if (!splits_keys(name) && splits > 1) continue;
          grouped.problem.launch.splits = splits;
          repeated.problem.launch.splits = splits;
          const AttentionResult a = test::run(name, grouped.problem);
          const AttentionResult b = test::run(name, repeated.problem);
          EXPECT_EQ(bits_of(a.out), bits_of(b.out)) << name;
          EXPECT_EQ(bits_of(a.lse), bits_of(b.lse)) << name;
        }
      }
    }
  }
}

// Three queries for two keys: the first stands before both.
TEST(AttentionKernels, QueriesThatSeeNothing) {
  for (const std::string_view name : names(false)) {
    Layer layer({.query_heads = 2, .kv_heads = 1, .query_len = 3, .kv_len = 2, .head_dim = 16},
                binary16, 5);
    const AttentionResult result = test::run(name, layer.problem);
    const bool eager = test::kernel(name).family == AttentionFamily::eager;
    for (const std::size_t head : {0U, 1U}) {
      for (std::size_t d = 0; d < 16; ++d) {
        EXPECT_EQ(bits_of(result.out)[head * 48 + d], eager ? 0x7fc00000U : 0U) << name;
        EXPECT_FALSE(std::isnan(result.out[head * 48 + 16 + d])) << name;
      }
      EXPECT_NE(result.out[head * 48 + 16], 0) << name;
      if (!result.lse.empty()) {
        EXPECT_EQ(result.lse[head * 3], -std::numeric_limits<float>::infinity()) << name;
      }
    }
  }
}

// A window that leaves whole blocks, chunks and splits empty.
TEST(AttentionKernels, WindowsThatLeaveSplitsEmpty) {
  for (const std::string_view name : names(false)) {
    Layer layer({.query_heads = 2, .kv_heads = 1, .query_len = 1, .kv_len = 1100, .head_dim = 32},
                binary16, 6);
    layer.problem.mask.window = 40;
    layer.problem.launch.cpu_threads = 5;
    if (splits_keys(name)) layer.problem.launch.splits = 4;
    expect_attention(name, layer);
  }
}

// Without causal masking a window hides nothing after the query, split or not.
TEST(AttentionKernels, WindowsWithoutCausalMasking) {
  for (const std::string_view name : names(false)) {
    Layer layer({.query_heads = 2, .kv_heads = 1, .query_len = 300, .kv_len = 500, .head_dim = 16},
                binary16, 9);
    layer.problem.mask = {.causal = false, .window = 350, .soft_cap = 0};
    if (splits_keys(name)) layer.problem.launch.splits = 3;
    expect_attention(name, layer);
  }
}

TEST(AttentionKernels, ThreadsAndSimdLevelsChangeNothing) {
  for (const bool decode_only : {false, true}) {
    for (const std::string_view name : names(decode_only)) {
      Layer layer({2, 1, decode_only ? 1 : 3, 100, 48}, binary16, 3);
      if (splits_keys(name)) layer.problem.launch.split_size = 40;
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
}

}  // namespace
}  // namespace kvsim
