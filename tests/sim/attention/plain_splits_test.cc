// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Tiles, numbers of splits and the keys of each split against the plain version, on launches of
// every size: no number is computed, so that lengths can be those of real caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/attention/kernel.h"
#include "sim/attention/splits.h"
#include "sim/philox.h"
#include "tests/sim/attention/plain/online_splits.h"

namespace kvsim {
namespace {

using plain::OnlineKernel;
using plain::Problem;
using plain::Tiling;

struct Named {
  std::string_view name;
  OnlineKernel kernel;
};

constexpr std::array<Named, 8> kernels{{
    {"a100-fa2", {Tiling::fa2, {}, 108}},
    {"a100-flash-decoding", {Tiling::fa2, {}, 108, false, true}},
    {"h100-fa3", {Tiling::fa3, {}, 132}},
    {"b200-fa4", {Tiling::fa4, {}, 148}},
    {"a100-flashinfer", {Tiling::flashinfer, {}, 108}},
    {"h100-flashinfer", {Tiling::flashinfer, {}, 132}},
    {"mi300-fa2", {Tiling::mi300, {}, 304}},
    {"llama.cpp-cuda", {Tiling::llama_cuda, {}, 108}},
}};

/// A launch, without numbers.
Problem random_launch(std::uint64_t index) {
  std::uint64_t at = index << 16;
  const auto within = [&](std::int64_t low, std::int64_t high) {
    const std::uint64_t span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(philox_bits(11, 1, at++) % span);
  };
  const auto chance = [&](int percent) { return within(1, 100) <= percent; };
  Problem p;
  p.kv_heads = within(1, 16);
  p.heads = p.kv_heads * within(1, 16);
  p.query_len = chance(60) ? 1 : within(1, chance(50) ? 12 : 3000);
  p.kv_len = within(1, chance(50) ? 2000 : 200'000);
  p.head_dim = within(1, 32) * 8;
  p.causal = chance(70);
  if (chance(25)) p.window = within(1, chance(50) ? 300 : 8192);
  p.batch = chance(50) ? 1 : within(1, 64);
  if (chance(40)) p.longest_kv_len = p.kv_len + within(0, 50'000);
  if (p.batch > 1 && chance(30)) {
    p.kv_lens = {p.kv_len};
    while (std::ssize(p.kv_lens) < p.batch) p.kv_lens.push_back(within(1, p.longest()));
  }
  if (chance(40)) p.multiprocessors = within(1, 300);
  if (chance(15)) p.forced_splits = within(1, 200);
  if (p.forced_splits == 0 && chance(10)) p.split_size = within(100, 5000);
  p.paged = chance(30);
  p.page_size = std::int64_t{1} << within(0, 7);
  return p;
}

TEST(PlainSplits, TilesSplitsAndKeysAreThoseOfTheProduct) {
  for (const Named& named : kernels) {
    const AttentionKernel* const row = find_attention_kernel(named.name);
    ASSERT_NE(row, nullptr) << named.name;
    std::int64_t split_launches = 0;
    for (std::uint64_t index = 0; index < 4000; ++index) {
      Problem p = random_launch(index);
      if (row->tiles->split.policy == SplitPolicy::never) p.forced_splits = p.split_size = 0;
      const AttentionShape shape{p.heads, p.kv_heads, p.query_len, p.kv_len, p.head_dim};
      const AttentionMask mask{p.causal, p.window, 0};
      const AttentionLaunch launch{.batch = p.batch,
                                   .longest_kv_len = p.longest_kv_len,
                                   .kv_lens = p.kv_lens,
                                   .multiprocessors = p.multiprocessors,
                                   .splits = p.forced_splits,
                                   .split_size = p.split_size,
                                   .page_size = p.page_size,
                                   .paged = p.paged};
      const SplitPlan plan = plan_splits(*row, shape, mask, launch);
      const std::int64_t splits = number_of_splits(named.kernel, p);
      ASSERT_EQ(plan.splits, splits) << named.name << " " << index;
      const bool split_tile = splits > 1 || named.kernel.split_tile;
      ASSERT_EQ(plan.block_columns, tile_columns(named.kernel.tiling, p, split_tile))
          << named.name << " " << index;
      if (splits == 1) continue;
      ++split_launches;
      // The rows at both ends and in the middle, the first and last splits.
      const std::int64_t rows = p.query_len * p.group();
      for (const std::int64_t r : {std::int64_t{0}, rows / 2, rows - 1}) {
        const std::int64_t tile = plan.tile_rows > 0 ? r / plan.tile_rows : 0;
        for (const std::int64_t s : {std::int64_t{0}, splits / 2, splits - 1}) {
          const attention::KeyRange product = split_keys(plan, shape, mask, tile, s);
          const plain::KeyRange expected =
              split_range(named.kernel, p, splits, s, r % p.group(), r / p.group());
          const bool empty = expected.last <= expected.first;
          ASSERT_EQ(product.empty(), empty) << named.name << " " << index << " split " << s;
          if (empty) continue;
          ASSERT_EQ(product.begin, expected.first) << named.name << " " << index << " split " << s;
          ASSERT_EQ(product.end, expected.last) << named.name << " " << index << " split " << s;
        }
      }
    }
    if (row->tiles->split.policy != SplitPolicy::never) {
      EXPECT_GT(split_launches, 1000) << named.name;
    }
  }
}

}  // namespace
}  // namespace kvsim
