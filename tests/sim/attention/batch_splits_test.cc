// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// One sequence's length moves the results of the others, or not: Dao-AILab/flash-attention issues
// 1570 and 1897 (batch 4, 32 query and 8 K/V heads, head_dim 128, bfloat16, lengths 900, 1000, 120,
// 500, of which the first becomes 800).
#include <array>

#include "sim/attention/splits.h"
#include "sim/compare.h"
#include "tests/sim/attention/attention_helpers.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;

constexpr std::array<std::int64_t, 4> before{900, 1000, 120, 500};
constexpr std::array<std::int64_t, 4> after{800, 1000, 120, 500};

AttentionShape shape_of(std::int64_t kv_len) {
  return {.query_heads = 32, .kv_heads = 8, .query_len = 1, .kv_len = kv_len, .head_dim = 128};
}

AttentionLaunch launch_of(std::span<const std::int64_t> lengths) {
  AttentionLaunch launch;
  launch.batch = 4;
  launch.longest_kv_len = 1000;
  launch.kv_lens = lengths;
  return launch;
}

/// The results of sequence i, whose numbers do not depend on its length, in a launch.
std::vector<std::byte> results(std::string_view name, std::size_t i, std::int64_t kv_len,
                               const AttentionLaunch& launch) {
  const test::Layer cache(shape_of(1024), bfloat16, i + 1);
  test::Layer layer(shape_of(kv_len), bfloat16, i + 1);
  for (std::size_t head = 0; head < 8; ++head) {
    const auto count = static_cast<std::ptrdiff_t>(kv_len * 128);
    const auto from = static_cast<std::ptrdiff_t>(head * 1024 * 128);
    const auto to = static_cast<std::ptrdiff_t>(head) * count;
    std::copy_n(cache.k.begin() + from, count, layer.k.begin() + to);
    std::copy_n(cache.v.begin() + from, count, layer.v.begin() + to);
  }
  layer.problem.launch = launch;
  const auto result = run_attention(*find_attention_kernel(name), layer.problem);
  if (!result) ADD_FAILURE() << result.error().message;
  return encode_values(bfloat16, result->out);
}

TEST(BatchSplits, OfEachSequenceWorkedByHand) {
  // B = 176: 6 + 6 + 1 + 3 = 16 blocks, 16 · 1.1 · 8 ÷ 132 = 1.07, so 2 for each multiprocessor;
  // 5 + 6 + 1 + 3 = 15 blocks: 15 · 1.1 · 8 ÷ 132 = 1, exactly 1 in binary32. Of 6 splits at most:
  // 8 tiles, as for a batch of 1, of which 6 times as many, one for each block, leave most idle.
  const AttentionKernel& kernel = *find_attention_kernel("h100-fa3");
  const auto splits = [&](std::span<const std::int64_t> lengths) {
    std::vector<std::int64_t> out;
    for (const std::int64_t length : lengths) {
      out.push_back(plan_splits(kernel, shape_of(length), {}, launch_of(lengths)).splits);
    }
    return out;
  };
  EXPECT_EQ(splits(before), (std::vector<std::int64_t>{3, 3, 1, 2}));
  EXPECT_EQ(splits(after), (std::vector<std::int64_t>{5, 6, 1, 3}));
}

TEST(BatchSplits, ChosenForTheBatchOneLengthMovesAnotherSequence) {
  double farthest = 0;
  std::vector<bool> moved;
  for (std::size_t i = 1; i < before.size(); ++i) {
    const auto a = results("h100-fa3", i, before[i], launch_of(before));
    const auto b = results("h100-fa3", i, after[i], launch_of(after));
    moved.push_back(compare_codes(bfloat16, a, b).different > 0);
    farthest = std::max(farthest, max_row_ulp(bfloat16, a, b, 128));
  }
  // 6 blocks are 2 + 2 + 2 and one each; 1 block is never split; 3 blocks are 2 + 1 and one each.
  EXPECT_EQ(moved, (std::vector<bool>{true, false, true}));
  EXPECT_LE(farthest, 2);
}

TEST(BatchSplits, ChosenForEachSequenceTheOthersKeepTheirBits) {
  for (const std::string_view name : {"h100-fa3", "a100-flashinfer"}) {
    for (std::size_t i = 1; i < before.size(); ++i) {
      // Alone in its launch, a sequence knows nothing of the others; of a fixed size, splits do not
      // depend on them.
      AttentionLaunch fixed_before = launch_of(before);
      AttentionLaunch fixed_after = launch_of(after);
      fixed_before.split_size = fixed_after.split_size = 256;
      EXPECT_EQ(results(name, i, before[i], fixed_before), results(name, i, after[i], fixed_after))
          << name << " sequence " << i;
    }
  }
}

}  // namespace
}  // namespace kvsim
