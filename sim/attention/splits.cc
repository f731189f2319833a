// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/attention/families.h"
#include "sim/integers.h"

namespace kvsim {
namespace {

constexpr std::int64_t most_splits = std::int64_t{1} << 16;
constexpr std::int64_t smallest_chunk = 128;

const TileColumns* find_tile(const TileRule& rule, std::int64_t head_dim) {
  for (const TileColumns& tile : rule.tiles) {
    if (head_dim <= tile.head_dim) return &tile;
  }
  return nullptr;
}

std::int64_t columns_of(const TileRule& rule, const AttentionShape& shape,
                        const AttentionMask& mask, bool paged, bool split) {
  const TileColumns& tile = *find_tile(rule, shape.head_dim);
  const bool causal = mask.causal && shape.query_len > 1;  // one query sees every key anyway
  const bool narrow = (tile.narrow_if_causal && causal) ||
                      (tile.narrow_if_windowed && mask.window > 0) ||
                      (tile.narrow_if_paged && paged);
  if (narrow) return tile.narrow_columns;
  return split || rule.always_split_tile ? tile.split_columns : tile.columns;
}

/// FlashAttention packs the query heads of a group as rows when there is one query.
bool packs_group(const AttentionShape& shape, const AttentionMask& mask) {
  return shape.query_len == 1 && mask.window == 0 && shape.head_dim % 8 == 0;
}

std::int64_t tile_rows_of(const SplitRule& rule, const AttentionShape& shape) {
  if (shape.head_dim <= rule.small_head_dim) return rule.small_head_tile_rows;
  const bool tall = shape.query_len * shape.group() > rule.tile_rows;
  return tall && rule.tall_tile_rows > 0 ? rule.tall_tile_rows : rule.tile_rows;
}

std::int64_t longest(const AttentionShape& shape, const AttentionLaunch& launch) {
  return launch.longest_kv_len > 0 ? launch.longest_kv_len : shape.kv_len;
}

std::int64_t multiprocessors_of(const AttentionKernel& kernel, const AttentionLaunch& launch) {
  return launch.multiprocessors > 0 ? launch.multiprocessors : kernel.multiprocessors;
}

}  // namespace

std::int64_t splits_by_wave_efficiency(const SplitRule& rule, const SplitWork& work) {
  if (work.blocks <= rule.whole_blocks) return 1;
  const std::int64_t tiles = work.batch * work.heads * divide_up(work.rows, rule.tile_rows);
  const std::int64_t slots = rule.slots_per_multiprocessor * work.multiprocessors;
  if (static_cast<float>(tiles) >= 0.8F * static_cast<float>(slots)) return 1;
  const std::int64_t most = std::min({rule.most_splits, slots, work.blocks});
  std::vector<float> efficiency(static_cast<std::size_t>(most) + 1, 0.0F);
  float best = 0;
  for (std::int64_t s = 1; s <= most; ++s) {
    const bool same_share = s > 1 && divide_up(work.blocks, s) == divide_up(work.blocks, s - 1);
    if (rule.skips_equal_shares && same_share) continue;
    const float waves = static_cast<float>(tiles * s) / static_cast<float>(slots);
    efficiency[static_cast<std::size_t>(s)] = waves / std::ceil(waves);
    best = std::max(best, efficiency[static_cast<std::size_t>(s)]);
  }
  for (std::int64_t s = 1; s <= most; ++s) {
    const double own = efficiency[static_cast<std::size_t>(s)];
    if (own > 0 && own >= 0.85 * static_cast<double>(best)) return s;
  }
  return 1;
}

std::int64_t splits_to_fill(const SplitRule& rule, const SplitWork& work) {
  if (work.blocks <= rule.whole_blocks) return 1;
  const std::int64_t tiles = work.batch * work.heads * divide_up(work.rows, rule.tile_rows);
  return std::min(
      {std::max<std::int64_t>(1, work.multiprocessors / tiles), work.blocks, rule.most_splits});
}

std::int64_t search_chunk(const AttentionShape& shape, const AttentionLaunch& launch,
                          std::int64_t multiprocessors) {
  const std::int64_t rows = shape.query_len * shape.group();
  const std::int64_t tile_rows = rows > 64 && shape.head_dim < 256 ? 128 : rows > 16 ? 64 : 16;
  // A cache in pages is cut between pages.
  const std::int64_t unit = launch.paged ? launch.page_size : 1;
  const std::int64_t keys = divide_up(longest(shape, launch), unit);
  const std::int64_t most_tiles = std::max<std::int64_t>(1, 2 * multiprocessors / shape.kv_heads);
  std::int64_t low = std::max<std::int64_t>(1, smallest_chunk / unit);
  std::int64_t high = std::max(keys, low);
  while (low < high) {
    const std::int64_t chunk = low + (high - low) / 2;
    if (launch.batch * divide_up(rows, tile_rows) * divide_up(keys, chunk) > most_tiles) {
      low = chunk + 1;
    } else {
      high = chunk;
    }
  }
  return low * unit;
}

std::int64_t splits_of_sequence(const SplitRule& rule, const SplitWork& work,
                                std::span<const std::int64_t> kv_lens, std::int64_t kv_len,
                                std::int64_t columns, std::int64_t most) {
  std::int64_t total = 0;
  for (const std::int64_t length : kv_lens) {
    total += divide_up(work.rows, rule.tile_rows) * divide_up(length, columns);
  }
  // 10 % of margin, in binary32 as the scheduler has it.
  const float share = static_cast<float>(total) * 1.1F * static_cast<float>(work.heads) /
                      static_cast<float>(work.multiprocessors);
  const auto blocks_each = static_cast<std::int64_t>(std::ceil(share));
  return std::max<std::int64_t>(1,
                                std::min(divide_up(divide_up(kv_len, columns), blocks_each), most));
}

SplitPlan plan_splits(const AttentionKernel& kernel, const AttentionShape& shape,
                      const AttentionMask& mask, const AttentionLaunch& launch) {
  const TileRule& rule = *kernel.tiles;
  const std::int64_t keys = longest(shape, launch);
  const std::int64_t split_columns = columns_of(rule, shape, mask, launch.paged, true);
  SplitRule split = rule.split;
  split.tile_rows = tile_rows_of(split, shape);
  SplitWork work{.batch = launch.batch,
                 .heads = shape.query_heads,
                 .rows = shape.query_len,
                 .blocks = divide_up(keys, split_columns),
                 .multiprocessors = multiprocessors_of(kernel, launch)};
  if (split.divides_visited_blocks) {
    work.heads = shape.kv_heads;
    work.rows = shape.query_len * shape.group();
    if (mask.window > 0) {
      const std::int64_t tile = split.tall_tile_rows > 0 ? rule.split.tile_rows : split.tile_rows;
      work.blocks = divide_up(std::min(keys, mask.window + tile), split_columns);
    }
  }
  const bool shares = split.shares_among_sequences && !launch.kv_lens.empty();
  if (shares) work.batch = 1;  // the most that a sequence gets: as if the others were short
  SplitPlan plan{.splits = launch.splits, .size = launch.split_size, .block_columns = 0};
  const bool forced = launch.splits > 0 || launch.split_size > 0;
  switch (rule.split.policy) {
    case SplitPolicy::never:
      plan.splits = 1;
      break;
    case SplitPolicy::wave_efficiency:
      if (!split.divides_visited_blocks && packs_group(shape, mask)) {
        work.heads = shape.kv_heads;
        work.rows = shape.group();
      }
      if (!forced) plan.splits = splits_by_wave_efficiency(split, work);
      break;
    case SplitPolicy::fill_multiprocessors:
      if (!forced) plan.splits = splits_to_fill(split, work);
      break;
    case SplitPolicy::chunk_search:
      if (launch.splits > 0) plan.size = divide_up(keys, launch.splits);
      if (!forced) plan.size = search_chunk(shape, launch, work.multiprocessors);
      break;
  }
  if (shares && plan.splits > 1) {
    plan.splits =
        splits_of_sequence(split, work, launch.kv_lens, shape.kv_len, split_columns, plan.splits);
  }
  if (plan.size > 0) {
    if (plan.splits == 0) plan.splits = divide_up(keys, plan.size);
  } else if (split.divides_visited_blocks) {
    plan.tile_rows = split.tile_rows;
  } else {
    plan.size = divide_up(work.blocks, plan.splits) * split_columns;
  }
  if (plan.splits == 1) {
    plan.size = shape.kv_len;
    plan.tile_rows = 0;
  }
  plan.block_columns = columns_of(rule, shape, mask, launch.paged, plan.splits > 1);
  return plan;
}

attention::KeyRange split_keys(const SplitPlan& plan, const AttentionShape& shape,
                               const AttentionMask& mask, std::int64_t tile, std::int64_t split) {
  if (plan.tile_rows == 0) {
    return {split * plan.size, std::min((split + 1) * plan.size, shape.kv_len)};
  }
  // The source bounds what a tile sees by its rows, whether all of them are there or not.
  const std::int64_t first = tile * plan.tile_rows / shape.group();
  const std::int64_t last = ((tile + 1) * plan.tile_rows - 1) / shape.group();
  const std::int64_t before = shape.kv_len - shape.query_len;
  std::int64_t end = divide_up(shape.kv_len, plan.block_columns);
  if (mask.causal) {
    const std::int64_t keys = std::max<std::int64_t>(0, last + 1 + before);
    end = std::min(end, divide_up(keys, plan.block_columns));
  }
  std::int64_t begin = 0;
  if (mask.window > 0) {
    begin = std::max<std::int64_t>(0, first + before - (mask.window - 1)) / plan.block_columns;
  }
  const std::int64_t share = divide_up(std::max<std::int64_t>(0, end - begin), plan.splits);
  const std::int64_t own = std::min(begin + split * share, end);
  return {own * plan.block_columns,
          std::min(std::min(own + share, end) * plan.block_columns, shape.kv_len)};
}

namespace attention {

Result<bool> check_online_tiles(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const TileRule& rule = *kernel.tiles;
  const std::int64_t head_dim = problem.shape.head_dim;
  if (find_tile(rule, head_dim) == nullptr) {
    return Error{ErrorKind::usage, fmt::format("kernel {} with head_dim {}: accepted are 1 to {}",
                                               kernel.name, head_dim, rule.tiles.back().head_dim)};
  }
  const AttentionLaunch& launch = problem.launch;
  const std::int64_t keys = longest(problem.shape, launch);
  if (launch.splits > most_splits ||
      (launch.split_size > 0 && divide_up(keys, launch.split_size) > most_splits)) {
    return Error{ErrorKind::usage,
                 fmt::format("splits {} or split_size {}: at most {} splits are accepted",
                             launch.splits, launch.split_size, most_splits)};
  }
  return true;
}

}  // namespace attention
}  // namespace kvsim
