// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::Evidence;

constexpr std::string_view gpu_row_sum = "lanes(32,4,join=butterfly)";

constexpr EagerRule gpu_eager{.row_sum = gpu_row_sum};
constexpr EagerRule gpu_sqrt_on_both{.scale_on_both = true, .row_sum = gpu_row_sum};
constexpr EagerRule gpu_softmax_in_storage{.softmax_in_storage = true, .row_sum = gpu_row_sum};
constexpr EagerRule plain{.row_sum = "sequential", .exp = SoftmaxExp::correctly_rounded};
constexpr EagerRule exact_sums{.row_sum = "exact", .exp = SoftmaxExp::correctly_rounded};

constexpr auto volta_sums = std::to_array<StorageSums>({
    {binary16, "mma(v100.mma.f16.f32)", "mma(v100.mma.f16.f32)"},
});
// float32 tensors without TF32: CUDA cores, one fused multiply-add per term, in increasing K.
constexpr auto hopper_eager_sums = std::to_array<StorageSums>({
    hopper_wgmma_sums[0],
    hopper_wgmma_sums[1],
    {binary32, "sequential", "sequential", Product::fused},
});
constexpr auto sequential_sums = std::to_array<StorageSums>({
    {binary32, "sequential", "sequential"},
    {binary16, "sequential", "sequential"},
    {bfloat16, "sequential", "sequential"},
});
constexpr auto correct_sums = std::to_array<StorageSums>({
    {binary32, "exact", "exact"},
    {binary16, "exact", "exact"},
    {bfloat16, "exact", "exact"},
});

constexpr std::string_view framework =
    "pytorch/pytorch aten/src/ATen/native/transformers/attention.cpp, "
    "huggingface/transformers eager_attention_forward";
constexpr std::string_view assumed_gpu =
    "assumed: one chain over K without split-K, the row sum's order, and a correctly rounded exp";

constexpr AttentionKernel eager(std::string_view name, std::string_view device,
                                std::int64_t multiprocessors, std::span<const StorageSums> sums,
                                const EagerRule& rule) {
  return {.name = name,
          .family = AttentionFamily::eager,
          .device = device,
          .multiprocessors = multiprocessors,
          .storages = sums,
          .eager = &rule,
          .source = framework,
          .date = snapshot,
          .evidence = Evidence::assumed,
          .note = assumed_gpu};
}

constexpr AttentionKernel control(std::string_view name, std::span<const StorageSums> sums,
                                  const EagerRule& rule, std::string_view note) {
  return {.name = name,
          .family = AttentionFamily::eager,
          .device = any,
          .storages = sums,
          .eager = &rule,
          .source = "this project: a control, no kernel of a library",
          .date = snapshot,
          .evidence = Evidence::documented,
          .note = note};
}

constexpr auto rows = std::to_array<AttentionKernel>({
    eager("v100-eager", volta, volta_multiprocessors, volta_sums, gpu_eager),
    eager("a100-eager", ampere, ampere_multiprocessors, ampere_sums, gpu_eager),
    eager("a100-eager-sqrt", ampere, ampere_multiprocessors, ampere_sums, gpu_sqrt_on_both),
    eager("a100-eager-storage-softmax", ampere, ampere_multiprocessors, ampere_sums,
          gpu_softmax_in_storage),
    eager("h100-eager", hopper, hopper_multiprocessors, hopper_eager_sums, gpu_eager),
    eager("h100-eager-sqrt", hopper, hopper_multiprocessors, hopper_wgmma_sums, gpu_sqrt_on_both),
    eager("h100-eager-storage-softmax", hopper, hopper_multiprocessors, hopper_wgmma_sums,
          gpu_softmax_in_storage),
    control("control-attention", sequential_sums, plain, "every sum sequential in binary32"),
    control("control-attention-exact", correct_sums, exact_sums,
            "every sum exact, rounded once to binary32"),
});

}  // namespace

std::span<const AttentionKernel> eager_rows() { return rows; }

}  // namespace kvsim::attention
