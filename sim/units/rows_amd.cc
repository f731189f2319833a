// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/rows.h"

namespace kvsim::units {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::binary64;
using softfloat::e4m3fnuz;
using softfloat::e5m2fnuz;
using softfloat::Format;
using softfloat::tf32;

constexpr std::string_view amd_tables = "MMA-Sim v2, arXiv:2511.10909 (2026-04), tables 6 and 7";
constexpr std::string_view nan_assumed =
    "which NaN the hardware returns is not known here; the code is assumed";

constexpr auto final_values = std::to_array<int>({1, 0});
constexpr std::string_view final_reason =
    "the authors' program rounds down once more at F2 after the addition; algorithm 10, line 14 of "
    "the paper shows one rounding down";
constexpr auto late_options =
    std::to_array<UnitOption>({{UnitParameter::final_rounding_down, final_values, final_reason}});
constexpr auto xf32_options =
    std::to_array<UnitOption>({{UnitParameter::final_rounding_down, final_values, final_reason},
                               {UnitParameter::operand_rounding, operand_roundings,
                                "the instruction drops the low 13 bits of a binary32; a kernel "
                                "may round them before"}});

constexpr MatrixUnit amd(std::string_view name, UnitOperation operation, const Format& input,
                         int fan_in, int blocks, std::string_view instruction) {
  MatrixUnit unit = to_f32(name, {}, input, fan_in, blocks, instruction);
  unit.operation = operation;
  unit.conversion = OutputConversion::rne_fp32;
  unit.nan_code = binary32.canonical_nan();
  unit.note = nan_assumed;
  unit.source = amd_tables;
  unit.is_default = true;
  return unit;
}

constexpr MatrixUnit amd_fma(std::string_view name, const Format& format,
                             std::string_view instruction, int k) {
  MatrixUnit unit = fma_row(name, format, instruction, k);
  unit.source = amd_tables;
  return unit;
}

/// CDNA3: F = 24 for the products, F2 = 31 with the addend.
constexpr MatrixUnit late(MatrixUnit unit, std::span<const UnitOption> options = late_options) {
  unit.fraction_bits = 24;
  unit.final_bits = 31;
  unit.options = options;
  return unit;
}

/// CDNA2 has two instructions for bfloat16, which differ in what they add in pairs.
constexpr MatrixUnit not_default(MatrixUnit unit) {
  unit.is_default = false;
  return unit;
}

// name, operation, input, L, blocks, instruction
constexpr auto rows = std::to_array<MatrixUnit>({
    amd_fma("mi100.mfma.f32.f32", binary32, "v_mfma_f32_16x16x4f32", 4),
    amd("mi100.mfma.bf16.f32", UnitOperation::e_fdpa, bfloat16, 2, 4, "v_mfma_f32_16x16x8bf16"),
    amd("mi100.mfma.f16.f32", UnitOperation::e_fdpa, binary16, 4, 4, "v_mfma_f32_16x16x16f16"),

    amd_fma("mi210.mfma.f64.f64", binary64, "v_mfma_f64_16x16x4f64", 4),
    amd_fma("mi210.mfma.f32.f32", binary32, "v_mfma_f32_16x16x4f32", 4),
    not_default(amd("mi210.mfma.bf16.f32", UnitOperation::ftz_add_mul, bfloat16, 2, 4,
                    "v_mfma_f32_16x16x8bf16")),
    amd("mi210.mfma_1k.bf16.f32", UnitOperation::ftz_add_mul, bfloat16, 4, 4,
        "v_mfma_f32_16x16x16bf16_1k"),
    amd("mi210.mfma.f16.f32", UnitOperation::ftz_add_mul, binary16, 4, 4, "v_mfma_f32_16x16x16f16"),

    amd_fma("mi300.mfma.f64.f64", binary64, "v_mfma_f64_16x16x4_f64", 4),
    amd_fma("mi300.mfma.f32.f32", binary32, "v_mfma_f32_16x16x4_f32", 4),
    late(amd("mi300.mfma.xf32.f32", UnitOperation::tr_fdpa, tf32, 4, 2, "v_mfma_f32_16x16x8_xf32"),
         xf32_options),
    late(amd("mi300.mfma.bf16.f32", UnitOperation::tr_fdpa, bfloat16, 8, 2,
             "v_mfma_f32_16x16x16_bf16")),
    late(amd("mi300.mfma.f16.f32", UnitOperation::tr_fdpa, binary16, 8, 2,
             "v_mfma_f32_16x16x16_f16")),
    late(amd("mi300.mfma.e4m3fnuz.f32", UnitOperation::gtr_fdpa, e4m3fnuz, 16, 2,
             "v_mfma_f32_16x16x32_fp8_fp8")),
    late(amd("mi300.mfma.e5m2fnuz.f32", UnitOperation::gtr_fdpa, e5m2fnuz, 16, 2,
             "v_mfma_f32_16x16x32_bf8_bf8")),
});

}  // namespace

std::span<const MatrixUnit> amd_rows() { return rows; }

}  // namespace kvsim::units
