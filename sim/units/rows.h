// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "sim/units/matrix_unit.h"

/// What the tables of rows share. Each table stands in a file of its own, one device after another;
/// to add a unit is to add a row.
namespace kvsim::units {

[[nodiscard]] std::span<const MatrixUnit> volta_to_ada_rows();
[[nodiscard]] std::span<const MatrixUnit> hopper_rows();
[[nodiscard]] std::span<const MatrixUnit> blackwell_rows();
[[nodiscard]] std::span<const MatrixUnit> amd_rows();
[[nodiscard]] std::span<const MatrixUnit> x86_rows();

/// The NaN that NVIDIA's units return, payload and sign of the operands lost.
inline constexpr softfloat::Bits nvidia_nan32 = 0x7fffffff;
inline constexpr softfloat::Bits nvidia_nan16 = 0x7fff;

inline constexpr std::string_view published =
    "MMA-Sim v2, arXiv:2511.10909 (2026-04), tables 3 to 5";
inline constexpr std::string_view hardware_rows =
    "500 hardware rows of arXiv:2512.07004 (2025-12), repeated bit for bit; parameters of MMA-Sim "
    "v2, arXiv:2511.10909 (2026-04)";

/// The parts of a row that its generation decides.
struct Generation {
  int fraction_bits = 0;
  int zero_exponent = 0;
};

/// A T-FDPA row of an NVIDIA generation with binary32 output, truncated.
[[nodiscard]] constexpr MatrixUnit to_f32(std::string_view name, const Generation& generation,
                                          const softfloat::Format& input, int fan_in, int blocks,
                                          std::string_view instruction) {
  MatrixUnit unit;
  unit.name = name;
  unit.instruction = instruction;
  unit.input = input;
  unit.operand = input == softfloat::tf32 ? softfloat::binary32 : input;
  unit.output = softfloat::binary32;
  unit.conversion = OutputConversion::rz_fp32;
  unit.fan_in = fan_in;
  unit.blocks = blocks;
  unit.fraction_bits = generation.fraction_bits;
  unit.zero_exponent = generation.zero_exponent;
  unit.nan_code = nvidia_nan32;
  unit.source = published;
  return unit;
}

/// The same with binary16 output, ties to even.
[[nodiscard]] constexpr MatrixUnit to_f16(std::string_view name, const Generation& generation,
                                          const softfloat::Format& input, int fan_in, int blocks,
                                          std::string_view instruction) {
  MatrixUnit unit = to_f32(name, generation, input, fan_in, blocks, instruction);
  unit.output = softfloat::binary16;
  unit.conversion = OutputConversion::rne_fp16;
  unit.nan_code = nvidia_nan16;
  return unit;
}

/// The row of a unit whose output this project has repeated bit for bit. `device.input.output`
/// names it.
[[nodiscard]] constexpr MatrixUnit measured(MatrixUnit unit) {
  unit.source = hardware_rows;
  unit.evidence = softfloat::Evidence::measured;
  unit.is_default = true;
  return unit;
}

[[nodiscard]] constexpr MatrixUnit as_default(MatrixUnit unit) {
  unit.is_default = true;
  return unit;
}

[[nodiscard]] constexpr MatrixUnit with_options(MatrixUnit unit,
                                                std::span<const UnitOption> options,
                                                std::string_view note = {}) {
  unit.options = options;
  unit.note = note;
  return unit;
}

[[nodiscard]] constexpr MatrixUnit with_conversion(MatrixUnit unit, OutputConversion conversion) {
  unit.conversion = conversion;
  return unit;
}

/// A chain of fused multiply-adds of one format.
[[nodiscard]] constexpr MatrixUnit fma_row(std::string_view name, const softfloat::Format& format,
                                           std::string_view instruction, int k) {
  MatrixUnit unit;
  unit.name = name;
  unit.instruction = instruction;
  unit.operation = UnitOperation::fma;
  unit.input = unit.operand = unit.output = format;
  unit.conversion =
      format == softfloat::binary64 ? OutputConversion::rne_fp64 : OutputConversion::rne_fp32;
  unit.blocks = k;
  unit.nan_code = format.canonical_nan();
  unit.note = "which NaN the hardware returns is not known here; the code is assumed";
  unit.source = published;
  unit.is_default = true;
  return unit;
}

/// What is open where the sources disagree by one, or do not say.
inline constexpr std::string_view zero_exponent_reason =
    "MMA-Sim v2 gives the first value, arXiv:2512.07004 (2026-08) the second; it matters only "
    "where every term of a block is below about 2^-20";
inline constexpr std::string_view wide_zero_exponent_reason =
    "MMA-Sim v2 gives the first value for the asynchronous instruction, the second for mma.sync; "
    "no hardware row decides";
inline constexpr auto volta_half_zero = std::to_array<int>({-20, -19});
inline constexpr auto ampere_half_zero = std::to_array<int>({-21, -20});
inline constexpr auto hopper_half_zero = std::to_array<int>({-22, -21});
inline constexpr auto hopper_wide_zero = std::to_array<int>({-133, -22});
inline constexpr auto volta_half_options = std::to_array<UnitOption>(
    {{UnitParameter::zero_exponent, volta_half_zero, zero_exponent_reason}});
inline constexpr auto ampere_half_options = std::to_array<UnitOption>(
    {{UnitParameter::zero_exponent, ampere_half_zero, zero_exponent_reason}});
inline constexpr auto hopper_half_options = std::to_array<UnitOption>(
    {{UnitParameter::zero_exponent, hopper_half_zero, zero_exponent_reason}});
inline constexpr auto hopper_wide_options = std::to_array<UnitOption>(
    {{UnitParameter::zero_exponent, hopper_wide_zero, wide_zero_exponent_reason}});

inline constexpr auto operand_roundings =
    std::to_array<int>({static_cast<int>(OperandRounding::truncate),
                        static_cast<int>(OperandRounding::nearest_ties_away)});
inline constexpr auto operand_options = std::to_array<UnitOption>(
    {{UnitParameter::operand_rounding, operand_roundings,
      "the instruction drops the low 13 bits of a binary32; kernels may round them before, with "
      "cvt.rna.tf32.f32"}});

}  // namespace kvsim::units
