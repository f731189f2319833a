// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/kernels.h"

#include <array>

#include "softfloat/formats.h"
#include "tests/sim/attention/plain/eager.h"
#include "tests/sim/attention/plain/llama_cpu.h"
#include "tests/sim/attention/plain/online_tiles.h"
#include "tests/sim/attention/plain/paged.h"
#include "tests/sim/attention/plain/torch_cpu.h"
#include "tests/sim/attention/plain/torch_cpu_eager.h"

namespace kvsim::plain {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;

constexpr std::array<softfloat::Format, 2> halves{binary16, bfloat16};
constexpr std::array<softfloat::Format, 1> half{binary16};
constexpr std::array<softfloat::Format, 2> single_or_bfloat16{binary32, bfloat16};
constexpr std::array<softfloat::Format, 3> all_formats{binary32, bfloat16, binary16};
constexpr std::array<std::int64_t, 9> head_dims{32, 16, 32, 64, 64, 80, 96, 128, 256};
// Small ones, too: products of few multiply-adds have orders of their own.
constexpr std::array<std::int64_t, 9> eager_head_dims{4, 7, 16, 20, 32, 64, 80, 128, 256};
constexpr std::array<std::int64_t, 10> flash_head_dims{32, 32, 64, 64, 80, 96, 128, 160, 192, 256};
constexpr std::array<std::int64_t, 6> paged_head_dims{32, 64, 80, 96, 128, 256};

Kernel online(std::string_view name, Tiling tiling, std::string_view unit,
              std::int64_t multiprocessors, bool unfused = false, bool split_tile = false) {
  const OnlineKernel kernel{tiling, unit, multiprocessors, unfused, split_tile};
  const bool splits = tiling != Tiling::mi300 && tiling != Tiling::llama_cuda;
  return {name,
          {.storages = halves, .head_dims = flash_head_dims, .splits = splits},
          [kernel](const Problem& p) { return online_tiles(kernel, p); }};
}

Kernel eager_on(std::string_view name, const EagerKernel& kernel, bool only_half = false) {
  Limits limits{.storages = halves, .head_dims = head_dims, .longest = 300};
  if (only_half) limits.storages = half;
  return {name, limits, [kernel](const Problem& p) { return eager(kernel, p); }};
}

Kernel control(std::string_view name, EagerSums sums) {
  const EagerKernel kernel{.unit = {}, .sums = sums};
  return {name,
          {.storages = all_formats, .head_dims = head_dims, .longest = 300},
          [kernel](const Problem& p) { return eager(kernel, p); }};
}

Kernel paged_as(std::string_view name, PagedVersion version) {
  return {name,
          {.storages = halves,
           .head_dims = paged_head_dims,
           .masks = false,
           .soft_cap = false,
           .decode_only = true,
           .longest = 1800},
          [version](const Problem& p) { return paged(version, p); }};
}

std::vector<Kernel> make_kernels() {
  return {
      eager_on("v100-eager", {.unit = "v100.mma"}, true),
      eager_on("a100-eager", {.unit = "a100.mma"}),
      eager_on("a100-eager-sqrt", {.unit = "a100.mma", .sqrt_on_both = true}),
      eager_on("a100-eager-storage-softmax", {.unit = "a100.mma", .softmax_in_storage = true}),
      eager_on("h100-eager", {.unit = "h100.wgmma"}),
      eager_on("h100-eager-sqrt", {.unit = "h100.wgmma", .sqrt_on_both = true}),
      eager_on("h100-eager-storage-softmax", {.unit = "h100.wgmma", .softmax_in_storage = true}),
      control("control-attention", EagerSums::sequential),
      control("control-attention-exact", EagerSums::exact),
      online("a100-fa2", Tiling::fa2, "a100.mma", 108),
      online("a100-fa2-unfused", Tiling::fa2, "a100.mma", 108, true),
      online("a100-flash-decoding", Tiling::fa2, "a100.mma", 108, false, true),
      online("h100-fa2", Tiling::fa2, "h100.mma", 132),
      online("h100-fa3", Tiling::fa3, "h100.wgmma", 132),
      online("b200-fa4", Tiling::fa4, "b200.tcgen05", 148),
      online("a100-flashinfer", Tiling::flashinfer, "a100.mma", 108),
      online("h100-flashinfer", Tiling::flashinfer, "h100.mma", 132),
      online("mi300-fa2", Tiling::mi300, "mi300.mfma", 304),
      online("llama.cpp-cuda", Tiling::llama_cuda, "a100.mma", 108),
      paged_as("a100-vllm", PagedVersion::chosen),
      paged_as("a100-vllm-v1", PagedVersion::v1),
      paged_as("a100-vllm-v2", PagedVersion::v2),
      {"torch-cpu",
       {.storages = all_formats,
        .head_dims = head_dims,
        .longest = 1100,
        .most_queries = 900,
        .products = 250'000},
       torch_cpu},
      {"torch-cpu-eager",
       {.storages = single_or_bfloat16,
        .head_dims = eager_head_dims,
        .longest = 1300,
        .products = 30'000},
       torch_cpu_eager},
      {"torch-cpu-avx2",
       {.storages = all_formats,
        .head_dims = head_dims,
        .longest = 1100,
        .most_queries = 900,
        .products = 250'000},
       torch_cpu_avx2},
      {"torch-cpu-avx2-eager",
       {.storages = single_or_bfloat16, .head_dims = head_dims, .longest = 300},
       torch_cpu_avx2_eager},
      {"llama.cpp-cpu", {.storages = half, .head_dims = head_dims, .longest = 1100}, llama_cpu},
  };
}

}  // namespace

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> list = make_kernels();
  return list;
}

}  // namespace kvsim::plain
