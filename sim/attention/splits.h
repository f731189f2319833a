// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/attention/visible_keys.h"

/// How a kernel of the online-tiles family cuts the keys: into splits, and these into blocks.
namespace kvsim {

/// Split s takes the keys s · size … (s + 1) · size − 1 that its sequence has, or, where tile_rows
/// is set, its share of the blocks that a tile of rows visits.
struct SplitPlan {
  std::int64_t splits = 1;
  std::int64_t size = 0;           ///< keys of a split; 0 where tile_rows is set
  std::int64_t tile_rows = 0;      ///< rows (query · group + head of the group) of a tile
  std::int64_t block_columns = 0;  ///< keys of a block, counted from the first key of the split
};

/// Sizes of a launch as a split heuristic sees them.
struct SplitWork {
  std::int64_t batch = 1;            ///< sequences
  std::int64_t heads = 1;            ///< whose rows are tiled
  std::int64_t rows = 1;             ///< of each of these heads
  std::int64_t blocks = 1;           ///< of the longest sequence's keys
  std::int64_t multiprocessors = 1;  ///< of the device
};

/// FlashAttention-2 and -3: 1 where the tiles alone fill 80 % of the slots; otherwise the smallest
/// number of splits with at least 85 % of the best ratio of work to whole waves of slots
/// (FlashAttention-2: of the numbers that change the blocks of a split).
[[nodiscard]] std::int64_t splits_by_wave_efficiency(const SplitRule& rule, const SplitWork& work);

/// FlashAttention-4: the multiprocessors that each tile can have.
[[nodiscard]] std::int64_t splits_to_fill(const SplitRule& rule, const SplitWork& work);

/// FlashInfer: the smallest number of keys of a chunk, at least 128, whole pages where the cache is
/// paged, with which the tiles of the
/// launch are at most max(1, 2 · multiprocessors ÷ kv_heads) for each K/V head.
[[nodiscard]] std::int64_t search_chunk(const AttentionShape& shape, const AttentionLaunch& launch,
                                        std::int64_t multiprocessors);

/// FlashAttention-3 where the lengths differ: a sequence's own number of splits, at most `most`, so
/// that each multiprocessor gets about as many blocks as the others. `work` is that of the launch,
/// `columns` the keys of a block.
[[nodiscard]] std::int64_t splits_of_sequence(const SplitRule& rule, const SplitWork& work,
                                              std::span<const std::int64_t> kv_lens,
                                              std::int64_t kv_len, std::int64_t columns,
                                              std::int64_t most);

/// The plan for a problem that check_online_tiles() accepts.
[[nodiscard]] SplitPlan plan_splits(const AttentionKernel& kernel, const AttentionShape& shape,
                                    const AttentionMask& mask, const AttentionLaunch& launch);

/// The keys of split `split` for the rows of tile `tile`.
[[nodiscard]] attention::KeyRange split_keys(const SplitPlan& plan, const AttentionShape& shape,
                                             const AttentionMask& mask, std::int64_t tile,
                                             std::int64_t split);

}  // namespace kvsim
