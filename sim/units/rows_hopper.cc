// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/emulated_fp8.h"
#include "sim/units/rows.h"

namespace kvsim::units {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary64;
using softfloat::e4m3;
using softfloat::e5m2;
using softfloat::Format;
using softfloat::tf32;

// F, and the exponent of a zero; mma.sync with binary16 output has one of its own.
constexpr Generation hopper{25, -133};
constexpr Generation hopper_half{25, -22};
constexpr Generation hopper_8bit{13, -133};

constexpr std::string_view mma_k16 = "mma.sync.m16n8k16";
constexpr std::string_view mma_k8 = "mma.sync.m16n8k8";
constexpr std::string_view mma_k32 = "mma.sync.m16n8k32";
constexpr std::string_view wgmma_k8 = "wgmma.mma_async.m64nNk8";
constexpr std::string_view wgmma_k16 = "wgmma.mma_async.m64nNk16";
constexpr std::string_view wgmma_k32 = "wgmma.mma_async.m64nNk32";

constexpr std::string_view short_rows =
    "the hardware rows have K = 4: they show F, but not that L is 8";
constexpr std::string_view no_addend = "the hardware rows have c = 0";
constexpr std::string_view hidden_fraction =
    "the hardware rows do not show F and the zero exponent: binary16 output hides them";

constexpr MatrixUnit fp8_to_f32(std::string_view name, const Format& input) {
  return with_options(measured(with_conversion(to_f32(name, hopper_8bit, input, 32, 1, wgmma_k32),
                                               OutputConversion::rz_e8m13)),
                      {}, no_addend);
}

constexpr MatrixUnit fp8_to_f16(std::string_view name, const Format& input) {
  return with_options(to_f16(name, hopper_8bit, input, 32, 1, wgmma_k32), hopper_wide_options);
}

// name, generation, input, L, blocks, instruction
constexpr auto rows = std::to_array<MatrixUnit>({
    fma_row("h100.mma.f64.f64", binary64, "mma.sync.m16n8k16", 16),
    with_options(measured(to_f32("h100.mma.tf32.f32", hopper, tf32, 8, 1, mma_k8)), operand_options,
                 short_rows),
    measured(to_f32("h100.mma.bf16.f32", hopper, bfloat16, 16, 1, mma_k16)),
    measured(to_f32("h100.mma.f16.f32", hopper, binary16, 16, 1, mma_k16)),
    with_options(measured(to_f16("h100.mma.f16.f16", hopper_half, binary16, 16, 1, mma_k16)),
                 hopper_half_options, hidden_fraction),
    emulated(to_f32("h100.mma.e4m3.f32", hopper, e4m3, 16, 2, mma_k32)),
    emulated(to_f32("h100.mma.e5m2.f32", hopper, e5m2, 16, 2, mma_k32)),
    emulated_measured(to_f16("h100.mma.e4m3.f16", hopper_half, e4m3, 16, 2, mma_k32)),
    emulated_measured(to_f16("h100.mma.e5m2.f16", hopper_half, e5m2, 16, 2, mma_k32)),

    with_options(to_f32("h100.wgmma.tf32.f32", hopper, tf32, 8, 1, wgmma_k8), operand_options),
    to_f32("h100.wgmma.bf16.f32", hopper, bfloat16, 16, 1, wgmma_k16),
    to_f32("h100.wgmma.f16.f32", hopper, binary16, 16, 1, wgmma_k16),
    with_options(to_f16("h100.wgmma.f16.f16", hopper, binary16, 16, 1, wgmma_k16),
                 hopper_wide_options),
    fp8_to_f32("h100.wgmma.e4m3.f32", e4m3),
    fp8_to_f32("h100.wgmma.e5m2.f32", e5m2),
    fp8_to_f16("h100.wgmma.e4m3.f16", e4m3),
    fp8_to_f16("h100.wgmma.e5m2.f16", e5m2),
});

}  // namespace

std::span<const MatrixUnit> hopper_rows() { return rows; }

}  // namespace kvsim::units
