// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/attention/kernel.h"
#include "sim/devices.h"
#include "softfloat/formats.h"

/// The tables of rows, one file for each family; to add a kernel is to add a row.
namespace kvsim::attention {

[[nodiscard]] std::span<const AttentionKernel> eager_rows();
[[nodiscard]] std::span<const AttentionKernel> flash_attention_rows();
[[nodiscard]] std::span<const AttentionKernel> flashinfer_rows();
[[nodiscard]] std::span<const AttentionKernel> triton_rows();
[[nodiscard]] std::span<const AttentionKernel> paged_rows();
[[nodiscard]] std::span<const AttentionKernel> torch_cpu_rows();
[[nodiscard]] std::span<const AttentionKernel> llama_rows();

/// When the sources were read.
inline constexpr std::string_view snapshot = "2026-08";

inline constexpr std::string_view volta = devices::v100.device_class;
inline constexpr std::string_view ampere = devices::a100.device_class;
inline constexpr std::string_view hopper = devices::h100.device_class;
inline constexpr std::string_view blackwell = devices::b200.device_class;
inline constexpr std::string_view mi300 = devices::mi300.device_class;
inline constexpr std::string_view cpu = devices::cpu.device_class;
inline constexpr std::string_view any = devices::any.device_class;

inline constexpr std::int64_t volta_multiprocessors = devices::v100.multiprocessors;
inline constexpr std::int64_t ampere_multiprocessors = devices::a100.multiprocessors;
inline constexpr std::int64_t hopper_multiprocessors = devices::h100.multiprocessors;
inline constexpr std::int64_t blackwell_multiprocessors = devices::b200.multiprocessors;
inline constexpr std::int64_t mi300_multiprocessors = devices::mi300.multiprocessors;

// Units of the products where a kernel runs both on one instruction.
inline constexpr auto ampere_sums = std::to_array<StorageSums>({
    {softfloat::binary16, "mma(a100.mma.f16.f32)", "mma(a100.mma.f16.f32)"},
    {softfloat::bfloat16, "mma(a100.mma.bf16.f32)", "mma(a100.mma.bf16.f32)"},
});
inline constexpr auto hopper_mma_sums = std::to_array<StorageSums>({
    {softfloat::binary16, "mma(h100.mma.f16.f32)", "mma(h100.mma.f16.f32)"},
    {softfloat::bfloat16, "mma(h100.mma.bf16.f32)", "mma(h100.mma.bf16.f32)"},
});
inline constexpr auto hopper_wgmma_sums = std::to_array<StorageSums>({
    {softfloat::binary16, "mma(h100.wgmma.f16.f32)", "mma(h100.wgmma.f16.f32)"},
    {softfloat::bfloat16, "mma(h100.wgmma.bf16.f32)", "mma(h100.wgmma.bf16.f32)"},
});

}  // namespace kvsim::attention
