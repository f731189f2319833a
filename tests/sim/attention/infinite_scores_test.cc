// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Scores that overflow to −∞: what each family makes of them (docs/attention.md, "Scores of −∞"),
// in closed form and against the plain versions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/attention/kernel.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "tests/sim/attention/attention_helpers.h"
#include "tests/sim/attention/plain/kernels.h"
#include "tests/sim/attention/plain/random_problem.h"
#include "tests/sim/attention/plain_compare.h"

namespace kvsim {
namespace {

using plain::Problem;
using softfloat::bfloat16;
using softfloat::binary16;

/// Which keys have the lowest scores.
enum class Keys : std::uint8_t { all, first_half, last_half, random, count };

/// Makes channel 0 of q·k overflow to −∞, or in binary16 fall below −50,000, at some keys.
void lower_scores(Problem& p, Keys keys, std::uint64_t seed) {
  const float large = p.storage == binary16 ? 250.0F : 0x1p70F;
  const auto d = static_cast<std::size_t>(p.head_dim);
  for (std::size_t i = 0; i < p.q.size(); i += d) p.q[i] = large;
  for (std::size_t i = 0; i < p.k.size(); i += d) {
    const auto key = static_cast<std::int64_t>(i / d) % p.kv_len;
    bool low = true;
    if (keys == Keys::first_half) low = key < p.kv_len / 2;
    if (keys == Keys::last_half) low = key >= p.kv_len / 2;
    if (keys == Keys::random) low = philox_bits(seed, 5, i) % 4 != 0;
    p.k[i] = low ? -large : 0.0F;
  }
}

TEST(InfiniteScores, AreTreatedAsThePlainVersionsTreatThem) {
  std::uint64_t stream = 7000;
  int with_nan = 0;
  int with_empty_rows = 0;
  for (const plain::Kernel& kernel : plain::kernels()) {
    plain::Limits limits = kernel.limits;
    limits.products = 2'000;
    limits.longest = std::min<std::int64_t>(limits.longest, 300);
    limits.most_queries = 9;
    ++stream;
    for (std::uint64_t i = 0; i < 8; ++i) {
      Problem p = random_problem(limits, stream, i);
      lower_scores(p, static_cast<Keys>(i % static_cast<std::uint64_t>(Keys::count)), i);
      ASSERT_EQ(test::compare(kernel, p), "")
          << kernel.name << ", problem " << i << ": " << test::describe(p);
      const plain::Result result = kernel.run(p);
      for (const float x : result.out) with_nan += std::isnan(x) ? 1 : 0;
      for (const float x : result.lse) with_empty_rows += x == -plain::infinity ? 1 : 0;
    }
  }
  // Both outcomes occur, so that both are compared.
  EXPECT_GT(with_nan, 0);
  EXPECT_GT(with_empty_rows, 0);
}

/// One query that sees `kv_len` keys, whose scores are all −∞; v is 1.
AttentionResult run_lowest(std::string_view name, std::int64_t kv_len, std::int64_t splits = 0) {
  test::Layer layer(
      {.query_heads = 1, .kv_heads = 1, .query_len = 1, .kv_len = kv_len, .head_dim = 128},
      bfloat16, 1);
  layer.q.assign(layer.q.size(), 0x1p70F);
  layer.k.assign(layer.k.size(), -0x1p70F);
  layer.v.assign(layer.v.size(), 1.0F);
  layer.problem.q = layer.q.data();
  layer.problem.k = layer.k.data();
  layer.problem.v = layer.v.data();
  layer.problem.launch.splits = splits;
  return test::run(name, layer.problem);
}

void expect_empty(const AttentionResult& result, std::string_view name) {
  EXPECT_EQ(test::bits_of(result.out), std::vector<std::uint32_t>(128, 0)) << name;
  for (const float x : result.lse) EXPECT_EQ(x, -plain::infinity) << name;
}

void expect_nan(const AttentionResult& result, std::string_view name) {
  EXPECT_EQ(test::bits_of(result.out), std::vector<std::uint32_t>(128, 0x7fc00000U)) << name;
}

TEST(InfiniteScores, LeaveNothingWhereTheKernelGuards) {
  // One block, whatever the kernel.
  for (const std::string_view name : {"a100-fa2", "a100-fa2-unfused", "h100-fa3", "b200-fa4",
                                      "mi300-fa2", "a100-vllm", "torch-cpu"}) {
    expect_empty(run_lowest(name, 32), name);
  }
  // Four blocks or more: these guard every block.
  for (const std::string_view name :
       {"b200-fa4", "a100-flashinfer", "mi300-fa2", "a100-vllm-v1", "a100-vllm-v2", "torch-cpu"}) {
    expect_empty(run_lowest(name, 512), name);
  }
}

// FlashInfer gives hidden columns the score −50,000, so that 32 of them count where the keys that
// are seen have less.
TEST(InfiniteScores, LeaveTheHiddenKeysOfFlashInfer) {
  AttentionResult result = run_lowest("a100-flashinfer", 32);
  EXPECT_EQ(result.lse, std::vector<float>{(-50'000.0F + 5.0F) * plain::ln2});
  result.lse.clear();
  expect_empty(result, "a100-flashinfer");
  expect_empty(run_lowest("a100-flashinfer", 64), "a100-flashinfer");
}

TEST(InfiniteScores, AreNotANumberWhereItDoesNot) {
  // Softmax over nothing.
  for (const std::string_view name : {"a100-eager", "h100-eager-storage-softmax"}) {
    expect_nan(run_lowest(name, 32), name);
  }
  // FlashAttention-2's rescale factor and all of FlashAttention-3's block go unguarded in blocks
  // that hide no key; both call the lse of a sum that is NaN −∞.
  for (const std::string_view name : {"a100-fa2", "h100-fa3"}) {
    const AttentionResult result = run_lowest(name, 352, 1);
    expect_nan(result, name);
    EXPECT_EQ(result.lse, std::vector<float>{-plain::infinity}) << name;
  }
  // Merging in splits: FlashAttention-3 skips parts of weight 0, FlashAttention-2 multiplies them.
  expect_nan(run_lowest("a100-fa2", 1024, 2), "a100-fa2");
  expect_empty(run_lowest("h100-fa3", 1056, 2), "h100-fa3");
}

}  // namespace
}  // namespace kvsim
