// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;

constexpr auto sums = std::to_array<StorageSums>({
    {binary16, "mma(mi300.mfma.f16.f32)", "mma(mi300.mfma.f16.f32)"},
    {bfloat16, "mma(mi300.mfma.bf16.f32)", "mma(mi300.mfma.bf16.f32)"},
});
constexpr auto tiles = std::to_array<TileColumns>({
    {.head_dim = 256, .columns = 64, .split_columns = 64},
});
constexpr TileRule rule{.tiles = tiles, .row_sum = RowSumRule::butterfly};

constexpr auto rows = std::to_array<AttentionKernel>({
    {.name = "mi300-fa2",
     .family = AttentionFamily::online_tiles,
     .device = mi300,
     .multiprocessors = mi300_multiprocessors,
     .storages = sums,
     .tiles = &rule,
     .source = "Dao-AILab/flash-attention flash_attn/flash_attn_triton_amd/fwd_prefill.py",
     .date = snapshot,
     .evidence = softfloat::Evidence::assumed,
     .note = "columns of a tile, the order of the row sum, v_exp_f32 as ex2.approx: assumed"},
});

}  // namespace

std::span<const AttentionKernel> triton_rows() { return rows; }

}  // namespace kvsim::attention
