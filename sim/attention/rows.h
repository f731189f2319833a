// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>

#include "sim/attention/kernel.h"

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

inline constexpr std::string_view volta = "V100 (sm70)";
inline constexpr std::string_view ampere = "A100 (sm80)";
inline constexpr std::string_view hopper = "H100 (sm90)";
inline constexpr std::string_view blackwell = "B200 (sm100)";
inline constexpr std::string_view mi300 = "MI300X (gfx942)";
inline constexpr std::string_view cpu = "CPU";
inline constexpr std::string_view any = "any";

inline constexpr std::int64_t volta_multiprocessors = 80;
inline constexpr std::int64_t ampere_multiprocessors = 108;
inline constexpr std::int64_t hopper_multiprocessors = 132;
inline constexpr std::int64_t blackwell_multiprocessors = 148;
inline constexpr std::int64_t mi300_multiprocessors = 304;

}  // namespace kvsim::attention
