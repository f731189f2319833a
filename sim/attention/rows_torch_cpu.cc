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

constexpr auto eager_sums = std::to_array<StorageSums>({
    {.storage = softfloat::binary32, .scores = {}, .values = {}},
    {.storage = softfloat::bfloat16, .scores = {}, .values = {}},
});

constexpr EagerRule avx512_eager{.row_sum = {},
                                 .exp = SoftmaxExp::correctly_rounded,
                                 .scores_kernel = "torch-cpu-scores",
                                 .values_kernel = "torch-cpu-values",
                                 .softmax_kernel = "torch-cpu-softmax"};
constexpr EagerRule avx2_eager{.row_sum = {},
                               .exp = SoftmaxExp::correctly_rounded,
                               .scores_kernel = "torch-cpu-avx2-scores",
                               .values_kernel = "torch-cpu-avx2-values",
                               .softmax_kernel = "torch-cpu-avx2-softmax"};
constexpr TorchCpuRule avx512{.lanes = 16, .scores_kernel = "torch-cpu-flash-scores"};
constexpr TorchCpuRule avx2{.lanes = 8, .scores_kernel = "torch-cpu-avx2-flash-scores"};

constexpr auto rows = std::to_array<AttentionKernel>({
    {.name = "torch-cpu",
     .family = AttentionFamily::torch_cpu,
     .device = cpu,
     .storages = sums,
     .torch_cpu = &avx512,
     .source = "pytorch/pytorch aten/src/ATen/native/cpu/FlashAttentionKernel.cpp; orders revealed "
               "on torch 2.11, AVX-512, one thread",
     .date = snapshot,
     .evidence = softfloat::Evidence::inferred,
     .note = "bfloat16 products as in binary32, aligned buffers, libm's expf correctly rounded: "
             "assumed"},
    {.name = "torch-cpu-eager",
     .family = AttentionFamily::eager,
     .device = cpu,
     .storages = eager_sums,
     .eager = &avx512_eager,
     .source = "huggingface/transformers eager_attention_forward; replayed on torch 2.11, AVX-512, "
               "AVX512-BF16, one thread",
     .date = snapshot,
     .evidence = softfloat::Evidence::measured,
     .note = "binary32 with head_dim a multiple of 4: otherwise the addresses of rows count"},
    {.name = "torch-cpu-avx2",
     .family = AttentionFamily::torch_cpu,
     .device = cpu,
     .storages = sums,
     .torch_cpu = &avx2,
     .source = "pytorch/pytorch aten/src/ATen/native/cpu/FlashAttentionKernel.cpp; revealed and "
               "replayed on torch 2.11 with MKL_CBWR=AVX2 and ATEN_CPU_CAPABILITY=avx2, one thread",
     .date = snapshot,
     .evidence = softfloat::Evidence::measured,
     .note = {}},
    {.name = "torch-cpu-avx2-eager",
     .family = AttentionFamily::eager,
     .device = cpu,
     .storages = eager_sums,
     .eager = &avx2_eager,
     .source = "huggingface/transformers eager_attention_forward; revealed and replayed on torch "
               "2.11 with MKL_CBWR=AVX2, ATEN_CPU_CAPABILITY=avx2 and oneDNN disabled, one thread",
     .date = snapshot,
     .evidence = softfloat::Evidence::measured,
     .note = {}},
});

}  // namespace

std::span<const AttentionKernel> torch_cpu_rows() { return rows; }

}  // namespace kvsim::attention
