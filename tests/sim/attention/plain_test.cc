// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// The plain versions themselves, where a closed form says what must come out, and their
// exponentials against those of the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/attention/kernel.h"
#include "sim/exp_models.h"
#include "sim/order.h"
#include "sim/philox.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "tests/sim/attention/plain/eager.h"
#include "tests/sim/attention/plain/kernels.h"
#include "tests/sim/attention/plain/online_tiles.h"

namespace kvsim::plain {
namespace {

/// A layer of zeros.
Problem layer(const Kernel& kernel, std::int64_t heads, std::int64_t kv_heads,
              std::int64_t query_len, std::int64_t kv_len, std::int64_t head_dim) {
  Problem p;
  p.heads = heads;
  p.kv_heads = kv_heads;
  p.query_len = kernel.limits.decode_only ? 1 : query_len;
  p.kv_len = kv_len;
  p.head_dim = head_dim;
  p.storage = kernel.limits.storages.front();
  p.q.assign(static_cast<std::size_t>(heads * p.query_len * head_dim), 0.0F);
  p.k.assign(static_cast<std::size_t>(kv_heads * kv_len * head_dim), 0.0F);
  p.v.assign(p.k.size(), 0.0F);
  return p;
}

/// Small multiples of 1/8: exact in every format, with both signs.
void fill(std::vector<float>& numbers, std::uint64_t seed) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(philox_bits(seed, 3, i) % 33) / 8 - 2;
  }
}

/// llama.cpp on CUDA keeps its maximum 3·ln 2 above the scores: p is about 1/8, and what is rounded
/// to binary16 is not what is summed.
bool weighs_exactly(const Kernel& kernel) { return kernel.name != "llama.cpp-cuda"; }

void expect_value(const Kernel& kernel, float out, float value) {
  if (weighs_exactly(kernel)) {
    EXPECT_EQ(out, value) << kernel.name;
  } else {
    EXPECT_NEAR(out, value, 1e-3) << kernel.name;
  }
}

// vLLM divides by the sum + 10^-6, so that one key's weight is not 1 before it is rounded to
// storage; it is after.
TEST(PlainAttention, OneKeyGivesItsValue) {
  for (const Kernel& kernel : kernels()) {
    Problem p = layer(kernel, 4, 2, 1, 1, 32);
    fill(p.q, 1);
    fill(p.k, 2);
    fill(p.v, 3);
    const Result result = kernel.run(p);
    for (std::size_t i = 0; i < result.out.size(); ++i) {
      expect_value(kernel, result.out[i], p.v[i / 64 * 32 + i % 32]);
    }
  }
}

// One score lies so far above the others that their weights are 0.
TEST(PlainAttention, OneLargeScoreGivesItsValue) {
  for (const Kernel& kernel : kernels()) {
    for (const std::int64_t where : {0, 77, 149}) {
      Problem p = layer(kernel, 1, 1, 1, 150, 32);
      fill(p.v, 4);
      for (std::size_t i = 0; i < p.q.size(); i += 32) p.q[i] = 40;
      p.k[static_cast<std::size_t>(where * 32)] = 40;
      const Result result = kernel.run(p);
      for (std::size_t i = 0; i < result.out.size(); ++i) {
        expect_value(kernel, result.out[i], p.v[static_cast<std::size_t>(where * 32) + i % 32]);
      }
    }
  }
}

// Scores of 0 and 2^n keys: every weight is a power of two, every sum of these values exact.
TEST(PlainAttention, EqualScoresGiveTheMean) {
  for (const Kernel& kernel : kernels()) {
    Problem p = layer(kernel, 1, 1, 1, 256, 32);
    for (std::size_t i = 0; i < p.v.size(); ++i) {
      p.v[i] = static_cast<float>(static_cast<int>(philox_bits(5, 3, i) % 17) - 8);
    }
    std::vector<double> mean(32);
    for (std::size_t i = 0; i < p.v.size(); ++i) mean[i % 32] += static_cast<double>(p.v[i]) / 256;
    const Result result = kernel.run(p);
    for (std::size_t d = 0; d < 32; ++d) {
      // llama.cpp's accumulator of 11 bits and vLLM's + 10^-6 round; a mean is at most 8.
      const bool exact = kernel.name.find("llama") == std::string_view::npos &&
                         kernel.name.find("vllm") == std::string_view::npos;
      if (exact) {
        EXPECT_EQ(result.out[d], rounded(p.storage, static_cast<float>(mean[d]))) << kernel.name;
      } else {
        EXPECT_NEAR(result.out[d], mean[d], 0.05) << kernel.name;
      }
    }
  }
}

TEST(PlainAttention, QueriesThatSeeNothingGiveZeroOrNaN) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.limits.decode_only) continue;
    Problem p = layer(kernel, 1, 1, 4, 2, 16);
    fill(p.q, 6);
    fill(p.k, 7);
    fill(p.v, 8);
    const Result result = kernel.run(p);
    for (std::size_t i = 0; i < 32; ++i) {
      if (result.lse.empty()) {  // eager
        EXPECT_TRUE(std::isnan(result.out[i])) << kernel.name;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(result.out[i]), 0U) << kernel.name;
        EXPECT_EQ(result.lse[i / 16], -infinity) << kernel.name;
      }
    }
    for (std::size_t i = 32; i < 48; ++i) expect_value(kernel, result.out[i], p.v[i - 32]);
  }
}

TEST(PlainAttention, RepeatedHeadsGiveWhatGroupsGive) {
  for (const Kernel& kernel : kernels()) {
    Problem grouped = layer(kernel, 6, 2, 2, 70, 16);
    fill(grouped.q, 9);
    fill(grouped.k, 10);
    fill(grouped.v, 11);
    Problem repeated = grouped;
    repeated.kv_heads = 6;
    constexpr std::size_t numbers = 70 * 16;
    repeated.k.resize(6 * numbers);
    repeated.v.resize(6 * numbers);
    for (std::size_t head = 0; head < 6; ++head) {
      for (std::size_t i = 0; i < numbers; ++i) {
        repeated.k[head * numbers + i] = grouped.k[head / 3 * numbers + i];
        repeated.v[head * numbers + i] = grouped.v[head / 3 * numbers + i];
      }
    }
    EXPECT_EQ(kernel.run(grouped).out, kernel.run(repeated).out) << kernel.name;
  }
}

// An ulp of the row sum is hidden by the storage format in most outputs: it is compared by itself.
TEST(PlainAttention, RowSumsAreThoseOfTheOrderInTheTable) {
  const AttentionKernel* const row = find_attention_kernel("h100-eager");
  ASSERT_NE(row, nullptr);
  const kvsim::Result<Order> order = parse_order(row->eager->row_sum);
  ASSERT_TRUE(order);
  for (const softfloat::Format& format : {softfloat::binary32, softfloat::binary16}) {
    for (std::size_t n = 1; n <= 300; ++n) {
      std::vector<float> terms(n);
      std::vector<softfloat::Bits> codes;
      const std::vector<softfloat::Bits> ones(n, code(format, 1));
      for (std::size_t i = 0; i < n; ++i) {
        terms[i] = rounded(format, static_cast<float>(philox_bits(16, n, i) >> 40) * 0x1p-24F);
        codes.push_back(code(format, terms[i]));
      }
      const softfloat::Bits sum =
          sum_products(order.value(), Product::rounded, format, format, codes, ones, {}).bits;
      EXPECT_EQ(code(format, warp_sum(format, terms)), sum) << n;
    }
  }
}

// One forced split is the kernel without splits, and where one split holds every key the merge
// gives back what it was given: its weight is 1.
TEST(PlainAttention, AMergeOfOneSplitChangesNothing) {
  for (const Tiling tiling : {Tiling::fa3, Tiling::fa4, Tiling::flashinfer}) {
    const Kernel any{.name = "", .limits = kernels()[0].limits, .run = {}};
    Problem p = layer(any, 2, 1, 1, 60, 64);
    p.storage = softfloat::binary16;
    fill(p.q, 12);
    fill(p.k, 13);
    fill(p.v, 14);
    const OnlineKernel kernel{tiling, tiling == Tiling::fa4 ? "b200.tcgen05" : "h100.mma", 132};
    const Result whole = online_tiles(kernel, p);
    EXPECT_EQ(whole.splits, 1);
    p.longest_kv_len = 240;  // 4 splits of 60 keys, of which this sequence has the first
    p.split_size = 60;
    const Result split = online_tiles(kernel, p);
    EXPECT_EQ(split.splits, 4);
    EXPECT_EQ(split.out, whole.out);
  }
}

// The exponentials of the product are those of the plain version.
TEST(PlainAttention, ExponentialsAreThoseOfTheProduct) {
  const ExpFunction ex2(ExpModel::ex2_approx);
  const ExpFunction correct(ExpModel::correctly_rounded);
  const ExpFunction u20(ExpModel::torch_exp_u20);
  const ExpFunction fast_u20(ExpModel::torch_fexp_u20);
  const ExpFunction cubic(ExpModel::fa4_polynomial);
  EXPECT_TRUE(ex2.bounded());
  EXPECT_FALSE(correct.bounded());
  const auto same = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  for (std::uint64_t i = 0; i < 6000; ++i) {
    // Half of them anywhere in −160 … 16, half at most 2^-8 away from a multiple of 1/2.
    const std::uint64_t bits = philox_bits(15, 3, i);
    float x = static_cast<float>(bits >> 40) * 0x1p-24F * 176 - 160;
    if (i % 2 == 1) {
      const float near = std::rint(2 * x) / 2;
      x = near + static_cast<float>(bits % 511) * 0x1p-16F - 0x1p-8F;
    }
    EXPECT_TRUE(same(exp2_flushed(x), ex2.exp2(x))) << x;
    EXPECT_TRUE(same(exp_by_exp2(x), ex2.exp(x))) << x;
    EXPECT_TRUE(same(exp2_f(x), correct.exp2(x))) << x;
    EXPECT_TRUE(same(exp_f(x), correct.exp(x))) << x;
    EXPECT_TRUE(same(exp_u20(x), u20.exp(x))) << x;
    EXPECT_TRUE(same(fexp_u20(x), fast_u20.exp(x))) << x;
    EXPECT_TRUE(same(exp2_cubic(x), cubic.exp2(x))) << x;
  }
}

// 2^-126 is normal; below it results are flushed.
TEST(PlainAttention, BoundedExp2FlushesSubnormals) {
  EXPECT_EQ(exp2_flushed(-126), 0x1p-126F);
  EXPECT_EQ(exp2_flushed(-126.5F), 0);
  EXPECT_EQ(exp2_flushed(-infinity), 0);
  EXPECT_EQ(exp2_flushed(3), 8);
  EXPECT_EQ(exp2_f(-149), 0x1p-149F);
}

// 1.1 · 1.3 − 0.9 · 1.3 in two roundings and in one.
TEST(PlainAttention, FoldsDifferByARounding) {
  const float fused = fused_exponent(1.1F, 0.9F, 1.3F);
  const float unfused = unfused_exponent(1.1F, 0.9F, 1.3F);
  const double maximum = static_cast<double>(0.9F * 1.3F);
  const double exact = static_cast<double>(1.1F) * static_cast<double>(1.3F) - maximum;
  EXPECT_EQ(fused, static_cast<float>(exact));
  EXPECT_EQ(unfused, 1.1F * 1.3F - 0.9F * 1.3F);
  EXPECT_NE(fused, unfused);
}

}  // namespace
}  // namespace kvsim::plain
