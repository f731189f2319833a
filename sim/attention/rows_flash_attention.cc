// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::Evidence;

constexpr auto blackwell_sums = std::to_array<StorageSums>({
    {binary16, "mma(b200.tcgen05.f16.f32)", "mma(b200.tcgen05.f16.f32)"},
    {bfloat16, "mma(b200.tcgen05.bf16.f32)", "mma(b200.tcgen05.bf16.f32)"},
});

// flash_fwd_launch_template.h: run_mha_fwd_hdim*, run_mha_fwd_splitkv_dispatch.
constexpr auto fa2_tiles = std::to_array<TileColumns>({
    {.head_dim = 64, .columns = 128, .split_columns = 256},
    {.head_dim = 128, .columns = 64, .split_columns = 128},
    {.head_dim = 256, .columns = 64, .split_columns = 64},
});
// hopper/tile_size.h: tile_size_fwd_sm90, 16 bit, head_dim of v equal to that of q and k.
constexpr auto fa3_tiles = std::to_array<TileColumns>({
    {.head_dim = 64,
     .columns = 192,
     .split_columns = 192,
     .narrow_columns = 128,
     .narrow_if_causal = true,
     .narrow_if_windowed = true,
     .narrow_if_paged = true},
    {.head_dim = 96,
     .columns = 144,
     .split_columns = 144,
     .narrow_columns = 128,
     .narrow_if_windowed = true,
     .narrow_if_paged = true},
    {.head_dim = 128,
     .columns = 176,
     .split_columns = 176,
     .narrow_columns = 128,
     .narrow_if_causal = true,
     .narrow_if_windowed = true,
     .narrow_if_paged = true},
    {.head_dim = 192,
     .columns = 112,
     .split_columns = 112,
     .narrow_columns = 96,
     .narrow_if_windowed = true,
     .narrow_if_paged = true},
    {.head_dim = 256,
     .columns = 80,
     .split_columns = 80,
     .narrow_columns = 64,
     .narrow_if_windowed = true},
});
// flash_attn/cute/flash_fwd_sm100.py; head dimensions beyond 128 are assumed to be alike.
constexpr auto fa4_tiles = std::to_array<TileColumns>({
    {.head_dim = 256, .columns = 128, .split_columns = 128},
});

// flash_api.cpp: num_splits_heuristic with 2 blocks of 64 queries for each multiprocessor.
constexpr SplitRule fa2_splits{.policy = SplitPolicy::wave_efficiency,
                               .tile_rows = 64,
                               .slots_per_multiprocessor = 2,
                               .whole_blocks = 0};
// hopper/heuristics.h, hopper/flash_prepare_scheduler.cu.
constexpr SplitRule fa3_splits{.policy = SplitPolicy::wave_efficiency,
                               .tile_rows = 128,
                               .whole_blocks = 4,
                               .small_head_dim = 96,
                               .small_head_tile_rows = 192,
                               .skips_equal_shares = false,
                               .divides_visited_blocks = true,
                               .shares_among_sequences = true};
// flash_attn/cute/interface.py: two tiles of 128 rows go together where there is more than one.
constexpr SplitRule fa4_splits{.policy = SplitPolicy::fill_multiprocessors,
                               .tile_rows = 128,
                               .whole_blocks = 4,
                               .tall_tile_rows = 256,
                               .divides_visited_blocks = true};

// softmax.h: scale_apply_exp2 takes a maximum of −∞ as 0, softmax_rescale_o where Check_inf is set;
// normalize_softmax_lse takes a sum that is NaN as 0.
constexpr TileRule fa2{.tiles = fa2_tiles,
                       .last_to_first = true,
                       .split = fa2_splits,
                       .unrisen = UnrisenMaximum::zero_in_exponents,
                       .nan_sum_is_empty = true};
constexpr TileRule fa2_unfused{.tiles = fa2_tiles,
                               .last_to_first = true,
                               .fold = ExponentFold::unfused,
                               .split = fa2_splits,
                               .unrisen = UnrisenMaximum::zero_in_exponents,
                               .nan_sum_is_empty = true};
constexpr TileRule flash_decoding{.tiles = fa2_tiles,
                                  .last_to_first = true,
                                  .split = fa2_splits,
                                  .always_split_tile = true,
                                  .unrisen = UnrisenMaximum::zero_in_exponents,
                                  .nan_sum_is_empty = true};
// hopper/softmax.h, hopper/mainloop_fwd_sm90_tma_gmma_ws.hpp: Check_inf is set for the first block
// and for those that are masked.
constexpr TileRule fa3{.tiles = fa3_tiles,
                       .last_to_first = true,
                       .split = fa3_splits,
                       .merge = SplitMerge::normalized_weights,
                       .log_sum = LogSumRule::by_scale_log2,
                       .unrisen = UnrisenMaximum::zero_where_masked,
                       .nan_sum_is_empty = true};
// flash_attn/cute/softmax.py: row_max_safe.
constexpr TileRule fa4{.tiles = fa4_tiles,
                       .last_to_first = true,
                       .rescale_threshold = 8,
                       .emulated_exponentials = true,
                       .row_sum = RowSumRule::packed,
                       .split = fa4_splits,
                       .merge = SplitMerge::base2_normalized_weights,
                       .soft_cap = SoftCapRule::divided,
                       .log_sum = LogSumRule::base_2,
                       .scale_log2_in_binary32 = true,
                       .nan_sum_is_empty = true};

constexpr std::string_view fa2_source =
    "Dao-AILab/flash-attention csrc/flash_attn/src/flash_fwd_kernel.h, softmax.h, flash_api.cpp";
constexpr std::string_view fa3_source =
    "Dao-AILab/flash-attention hopper/tile_size.h, heuristics.h, flash_prepare_scheduler.cu, "
    "softmax.h, "
    "flash_fwd_combine_kernel.h";
constexpr std::string_view fa4_source =
    "Dao-AILab/flash-attention flash_attn/cute/flash_fwd_sm100.py, softmax.py";
constexpr std::string_view torch_source =
    "pytorch/pytorch aten/src/ATen/native/transformers/cuda/flash_attn (UNFUSE_FMA), issue 121558";
constexpr std::string_view note =
    "tanh, log and 1/x correctly rounded: assumed where the build uses fast-math";
constexpr std::string_view fa4_note =
    "which columns take the polynomial, head_dim beyond 128, and log and 1/x correctly rounded: "
    "assumed";
constexpr std::string_view fa3_note =
    "the rule for long caches in the L2 cache is not modelled; log and 1/x correctly rounded: "
    "assumed";

constexpr AttentionKernel row(std::string_view name, std::string_view device,
                              std::int64_t multiprocessors, std::span<const StorageSums> sums,
                              const TileRule& rule, std::string_view source,
                              std::string_view what_is_assumed) {
  return {.name = name,
          .family = AttentionFamily::online_tiles,
          .device = device,
          .multiprocessors = multiprocessors,
          .storages = sums,
          .tiles = &rule,
          .source = source,
          .date = snapshot,
          .evidence = Evidence::inferred,
          .note = what_is_assumed};
}

constexpr auto rows = std::to_array<AttentionKernel>({
    row("a100-fa2", ampere, ampere_multiprocessors, ampere_sums, fa2, fa2_source, note),
    row("a100-fa2-unfused", ampere, ampere_multiprocessors, ampere_sums, fa2_unfused, torch_source,
        note),
    row("a100-flash-decoding", ampere, ampere_multiprocessors, ampere_sums, flash_decoding,
        fa2_source, note),
    row("h100-fa2", hopper, hopper_multiprocessors, hopper_mma_sums, fa2, fa2_source, note),
    row("h100-fa3", hopper, hopper_multiprocessors, hopper_wgmma_sums, fa3, fa3_source, fa3_note),
    row("b200-fa4", blackwell, blackwell_multiprocessors, blackwell_sums, fa4, fa4_source,
        fa4_note),
});

}  // namespace

std::span<const AttentionKernel> flash_attention_rows() { return rows; }

}  // namespace kvsim::attention
