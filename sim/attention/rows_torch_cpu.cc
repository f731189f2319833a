// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

// The orders follow from the shape: torch_cpu.cc.
constexpr auto sums = std::to_array<StorageSums>({
    {.storage = softfloat::binary32, .scores = {}, .values = {}},
    {.storage = softfloat::bfloat16, .scores = {}, .values = {}},
    {.storage = softfloat::binary16, .scores = {}, .values = {}},
});

constexpr auto rows = std::to_array<AttentionKernel>({
    {.name = "torch-cpu",
     .family = AttentionFamily::torch_cpu,
     .device = cpu,
     .storages = sums,
     .source = "pytorch/pytorch aten/src/ATen/native/cpu/FlashAttentionKernel.cpp; orders revealed "
               "on torch 2.11, AVX-512, one thread",
     .date = snapshot,
     .evidence = softfloat::Evidence::inferred,
     .note = "16-bit products as in binary32, aligned buffers, libm's expf correctly rounded: "
             "assumed"},
});

}  // namespace

std::span<const AttentionKernel> torch_cpu_rows() { return rows; }

}  // namespace kvsim::attention
