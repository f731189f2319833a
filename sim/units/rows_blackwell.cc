// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/emulated_fp8.h"
#include "sim/units/rows.h"

namespace kvsim::units {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary64;
using softfloat::e2m1;
using softfloat::e2m3;
using softfloat::e3m2;
using softfloat::e4m3;
using softfloat::e5m2;
using softfloat::e8m0;
using softfloat::Format;
using softfloat::tf32;

// F, and the exponent of a zero; mma.sync with binary16 output has one of its own.
constexpr Generation blackwell{25, -133};
constexpr Generation blackwell_half{25, -22};
constexpr Generation blackwell_4bit{35, -139};

constexpr std::string_view mma_k16 = "mma.sync.m16n8k16";
constexpr std::string_view mma_k8 = "mma.sync.m16n8k8";
constexpr std::string_view mma_k32 = "mma.sync.m16n8k32";
constexpr std::string_view mma_8bit = "mma.sync.m16n8k32.kind::f8f6f4";
constexpr std::string_view mma_scaled = "mma.sync.m16n8k32.kind::mxf8f6f4.block_scale";
constexpr std::string_view mma_mxf4 = "mma.sync.m16n8k64.kind::mxf4.block_scale";
constexpr std::string_view mma_nvf4 = "mma.sync.m16n8k64.kind::mxf4nvf4.block_scale";
constexpr std::string_view tcgen05_tf32 = "tcgen05.mma.kind::tf32 (k8)";
constexpr std::string_view tcgen05_f16 = "tcgen05.mma.kind::f16 (k16)";
constexpr std::string_view tcgen05_8bit = "tcgen05.mma.kind::f8f6f4 (k32)";
constexpr std::string_view tcgen05_scaled = "tcgen05.mma.kind::mxf8f6f4.block_scale (k32)";
constexpr std::string_view tcgen05_mxf4 = "tcgen05.mma.kind::mxf4.block_scale (k64)";
constexpr std::string_view tcgen05_nvf4 = "tcgen05.mma.kind::mxf4nvf4.block_scale (k64)";

constexpr std::string_view short_rows =
    "the hardware rows have K = 4: they show F, but not that L is 8";
constexpr std::string_view hidden_fraction =
    "the hardware rows do not show F and the zero exponent: binary16 output hides them";

constexpr auto fraction_values = std::to_array<int>({35, 34, 36, 37});
constexpr auto fraction_options =
    std::to_array<UnitOption>({{UnitParameter::fraction_bits, fraction_values,
                                "MMA-Sim v2 gives 35; deepseek-ai/DeepGEMM issue 176 (2025-08) is "
                                "not sure between 34 and 37"}});

/// MX: one e8m0 scale for 32 elements.
constexpr MatrixUnit scaled(std::string_view name, const Format& input, std::string_view words) {
  MatrixUnit unit = to_f32(name, blackwell, input, 32, 1, words);
  unit.operation = UnitOperation::st_fdpa;
  unit.scale = e8m0;
  unit.scale_block = 32;
  return as_default(unit);
}

/// Four groups of 16 four-bit elements.
constexpr MatrixUnit grouped(std::string_view name, const Format& scale, int scale_block,
                             std::string_view words) {
  MatrixUnit unit = to_f32(name, blackwell_4bit, e2m1, 64, 1, words);
  unit.operation = UnitOperation::gst_fdpa;
  unit.scale = scale;
  unit.scale_block = scale_block;
  return with_options(as_default(unit), fraction_options);
}

/// kind::f8f6f4 of tcgen05.
constexpr MatrixUnit narrow(std::string_view name, const Format& input) {
  return to_f32(name, blackwell, input, 32, 1, tcgen05_8bit);
}
constexpr MatrixUnit narrow_half(std::string_view name, const Format& input) {
  return with_options(to_f16(name, blackwell, input, 32, 1, tcgen05_8bit), hopper_wide_options);
}

/// kind::f8f6f4 of the RTX parts, native there.
constexpr MatrixUnit rtx_narrow(std::string_view name, const Format& input) {
  return as_default(to_f32(name, blackwell, input, 32, 1, mma_8bit));
}
constexpr MatrixUnit rtx_narrow_half(std::string_view name, const Format& input) {
  return with_options(as_default(to_f16(name, blackwell_half, input, 32, 1, mma_8bit)),
                      hopper_half_options);
}

// name, generation, input, L, blocks, instruction
constexpr auto rows = std::to_array<MatrixUnit>({
    fma_row("b200.mma.f64.f64", binary64, "mma.sync.m16n8k16", 16),
    with_options(measured(to_f32("b200.mma.tf32.f32", blackwell, tf32, 8, 1, mma_k8)),
                 operand_options, short_rows),
    measured(to_f32("b200.mma.bf16.f32", blackwell, bfloat16, 16, 1, mma_k16)),
    measured(to_f32("b200.mma.f16.f32", blackwell, binary16, 16, 1, mma_k16)),
    with_options(measured(to_f16("b200.mma.f16.f16", blackwell_half, binary16, 16, 1, mma_k16)),
                 hopper_half_options, hidden_fraction),
    emulated_measured(to_f32("b200.mma.e4m3.f32", blackwell, e4m3, 16, 2, mma_k32)),
    emulated_measured(to_f32("b200.mma.e5m2.f32", blackwell, e5m2, 16, 2, mma_k32)),
    emulated_measured(to_f16("b200.mma.e4m3.f16", blackwell_half, e4m3, 16, 2, mma_k32)),
    emulated_measured(to_f16("b200.mma.e5m2.f16", blackwell_half, e5m2, 16, 2, mma_k32)),

    with_options(to_f32("b200.tcgen05.tf32.f32", blackwell, tf32, 8, 1, tcgen05_tf32),
                 operand_options),
    to_f32("b200.tcgen05.bf16.f32", blackwell, bfloat16, 16, 1, tcgen05_f16),
    to_f32("b200.tcgen05.f16.f32", blackwell, binary16, 16, 1, tcgen05_f16),
    with_options(to_f16("b200.tcgen05.f16.f16", blackwell, binary16, 16, 1, tcgen05_f16),
                 hopper_wide_options),
    narrow("b200.tcgen05.e4m3.f32", e4m3),
    narrow("b200.tcgen05.e5m2.f32", e5m2),
    as_default(narrow("b200.tcgen05.e3m2.f32", e3m2)),
    as_default(narrow("b200.tcgen05.e2m3.f32", e2m3)),
    as_default(narrow("b200.tcgen05.e2m1.f32", e2m1)),
    narrow_half("b200.tcgen05.e4m3.f16", e4m3),
    narrow_half("b200.tcgen05.e5m2.f16", e5m2),
    as_default(narrow_half("b200.tcgen05.e3m2.f16", e3m2)),
    as_default(narrow_half("b200.tcgen05.e2m3.f16", e2m3)),
    as_default(narrow_half("b200.tcgen05.e2m1.f16", e2m1)),
    scaled("b200.tcgen05.mx_e4m3.f32", e4m3, tcgen05_scaled),
    scaled("b200.tcgen05.mx_e5m2.f32", e5m2, tcgen05_scaled),
    scaled("b200.tcgen05.mx_e3m2.f32", e3m2, tcgen05_scaled),
    scaled("b200.tcgen05.mx_e2m3.f32", e2m3, tcgen05_scaled),
    scaled("b200.tcgen05.mx_e2m1.f32", e2m1, tcgen05_scaled),
    grouped("b200.tcgen05.mxf4.f32", e8m0, 32, tcgen05_mxf4),
    grouped("b200.tcgen05.nvf4.f32", ue4m3, 16, tcgen05_nvf4),

    with_options(as_default(to_f32("rtxpro6000.mma.tf32.f32", blackwell, tf32, 8, 1, mma_k8)),
                 operand_options),
    as_default(to_f32("rtxpro6000.mma.bf16.f32", blackwell, bfloat16, 16, 1, mma_k16)),
    as_default(to_f32("rtxpro6000.mma.f16.f32", blackwell, binary16, 16, 1, mma_k16)),
    with_options(
        as_default(to_f16("rtxpro6000.mma.f16.f16", blackwell_half, binary16, 16, 1, mma_k16)),
        hopper_half_options),
    rtx_narrow("rtxpro6000.mma.e4m3.f32", e4m3),
    rtx_narrow("rtxpro6000.mma.e5m2.f32", e5m2),
    rtx_narrow("rtxpro6000.mma.e3m2.f32", e3m2),
    rtx_narrow("rtxpro6000.mma.e2m3.f32", e2m3),
    rtx_narrow("rtxpro6000.mma.e2m1.f32", e2m1),
    rtx_narrow_half("rtxpro6000.mma.e4m3.f16", e4m3),
    rtx_narrow_half("rtxpro6000.mma.e5m2.f16", e5m2),
    rtx_narrow_half("rtxpro6000.mma.e3m2.f16", e3m2),
    rtx_narrow_half("rtxpro6000.mma.e2m3.f16", e2m3),
    rtx_narrow_half("rtxpro6000.mma.e2m1.f16", e2m1),
    scaled("rtxpro6000.mma.mx_e4m3.f32", e4m3, mma_scaled),
    scaled("rtxpro6000.mma.mx_e5m2.f32", e5m2, mma_scaled),
    scaled("rtxpro6000.mma.mx_e3m2.f32", e3m2, mma_scaled),
    scaled("rtxpro6000.mma.mx_e2m3.f32", e2m3, mma_scaled),
    scaled("rtxpro6000.mma.mx_e2m1.f32", e2m1, mma_scaled),
    grouped("rtxpro6000.mma.mxf4.f32", e8m0, 32, mma_mxf4),
    grouped("rtxpro6000.mma.nvf4.f32", ue4m3, 16, mma_nvf4),
});

}  // namespace

std::span<const MatrixUnit> blackwell_rows() { return rows; }

}  // namespace kvsim::units
