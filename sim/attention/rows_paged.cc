// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/attention/rows.h"

namespace kvsim::attention {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::Evidence;

// The orders follow from the page size: paged.cc.
constexpr auto sums = std::to_array<StorageSums>({
    {.storage = binary16, .scores = {}, .values = {}},
    {.storage = bfloat16, .scores = {}, .values = {}},
});

constexpr PagedRule chosen{};
constexpr PagedRule v1{.version = PagedRule::Version::v1};
constexpr PagedRule v2{.version = PagedRule::Version::v2};

constexpr AttentionKernel row(std::string_view name, const PagedRule& rule) {
  return {.name = name,
          .family = AttentionFamily::paged,
          .device = ampere,
          .multiprocessors = ampere_multiprocessors,
          .storages = sums,
          .paged = &rule,
          .source =
              "vllm-project/vllm csrc/attention/attention_kernels.cuh, attention_generic.cuh, "
              "dtype_float16.cuh, dtype_bfloat16.cuh",
          .date = snapshot,
          .evidence = Evidence::inferred,
          .note = "1/x correctly rounded: assumed (the source uses __fdividef)"};
}

constexpr auto rows = std::to_array<AttentionKernel>({
    row("a100-vllm", chosen),
    row("a100-vllm-v1", v1),
    row("a100-vllm-v2", v2),
});

}  // namespace

std::span<const AttentionKernel> paged_rows() { return rows; }

}  // namespace kvsim::attention
