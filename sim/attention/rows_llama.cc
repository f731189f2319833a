// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>
#include <limits>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::Evidence;

// The order of q·k: llama_cpu.cc.
constexpr auto cpu_sums = std::to_array<StorageSums>({
    {.storage = binary16, .scores = {}, .values = {}},
});
// Caches in bfloat16 are converted to binary16.
constexpr auto cuda_sums = std::to_array<StorageSums>({
    {binary16, "mma(a100.mma.f16.f32)", "mma(a100.mma.f16.f16)"},
    {bfloat16, "mma(a100.mma.f16.f32)", "mma(a100.mma.f16.f16)"},
});

constexpr auto cuda_tiles = std::to_array<TileColumns>({
    {.head_dim = 256, .columns = 64, .split_columns = 64},
});
// fattn-common.cuh: FATTN_KQ_MAX_OFFSET, SOFTMAX_FTZ_THRESHOLD.
constexpr TileRule cuda{.tiles = cuda_tiles,
                        .fold = ExponentFold::natural,
                        .maximum_offset = 3.0F * 0.6931F,
                        .flush_below = -20,
                        .row_sum = RowSumRule::butterfly,
                        .operands_in_half = true,
                        .divides = true,
                        .output_in_binary32 = true,
                        .soft_cap = SoftCapRule::scaled_before,
                        // fattn-mma-f16.cuh: KQ_max starts at -FLT_MAX/2.
                        .unrisen = UnrisenMaximum::finite,
                        .first_maximum = -std::numeric_limits<float>::max() / 2};

constexpr auto rows = std::to_array<AttentionKernel>({
    {.name = "llama.cpp-cpu",
     .family = AttentionFamily::llama_cpu,
     .device = cpu,
     .storages = cpu_sums,
     .source = "ggml-org/llama.cpp ggml/src/ggml-cpu/ops.cpp, vec.cpp (AVX2)",
     .date = snapshot,
     .evidence = Evidence::inferred,
     .note = "libm's expf correctly rounded, and details of the merge of threads: assumed"},
    {.name = "llama.cpp-cuda",
     .family = AttentionFamily::online_tiles,
     .device = ampere,
     .multiprocessors = ampere_multiprocessors,
     .storages = cuda_sums,
     .tiles = &cuda,
     .source = "ggml-org/llama.cpp ggml/src/ggml-cuda/fattn-mma-f16.cuh, fattn-common.cuh",
     .date = snapshot,
     .evidence = Evidence::assumed,
     .note =
         "keys of a block (32 to 128 in the source), the order of the row sum: assumed; stream-k "
         "splits are not modelled"},
});

}  // namespace

std::span<const AttentionKernel> llama_rows() { return rows; }

}  // namespace kvsim::attention
