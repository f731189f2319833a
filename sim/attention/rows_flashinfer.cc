// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::Evidence;

// The source derives the columns from registers and shared memory; these are assumed.
constexpr auto tiles = std::to_array<TileColumns>({
    {.head_dim = 128, .columns = 64, .split_columns = 64},
    {.head_dim = 256, .columns = 32, .split_columns = 32},
});

// math.cuh: inf, which prefill.cuh starts the maximum from and fills masked scores with.
constexpr float finite_infinity = 5e4F;

constexpr TileRule rule{.tiles = tiles,
                        .fold = ExponentFold::fused_rescale,
                        .row_sum = RowSumRule::unit,
                        .split = {.policy = SplitPolicy::chunk_search},
                        .merge = SplitMerge::serial_states,
                        .soft_cap = SoftCapRule::folded_reciprocal,
                        .log_sum = LogSumRule::fused_base_2,
                        .scale_log2_in_binary32 = true,
                        .unrisen = UnrisenMaximum::finite_mask,
                        .first_maximum = -finite_infinity};

constexpr AttentionKernel row(std::string_view name, std::string_view device,
                              std::int64_t multiprocessors, std::span<const StorageSums> sums) {
  return {.name = name,
          .family = AttentionFamily::online_tiles,
          .device = device,
          .multiprocessors = multiprocessors,
          .storages = sums,
          .tiles = &rule,
          .source =
              "flashinfer-ai/flashinfer include/flashinfer/math.cuh, attention/state.cuh, "
              "cascade.cuh, prefill.cuh, scheduler.cuh",
          .date = snapshot,
          .evidence = Evidence::inferred,
          .note = "the columns of a tile, and log2, 1/x and x/y correctly rounded: assumed"};
}

constexpr auto rows = std::to_array<AttentionKernel>({
    row("a100-flashinfer", ampere, ampere_multiprocessors, ampere_sums),
    row("h100-flashinfer", hopper, hopper_multiprocessors, hopper_mma_sums),
});

}  // namespace

std::span<const AttentionKernel> flashinfer_rows() { return rows; }

}  // namespace kvsim::attention
