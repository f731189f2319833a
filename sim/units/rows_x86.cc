// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/rows.h"

namespace kvsim::units {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::Evidence;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Subnormals;

constexpr std::string_view intel_manual =
    "Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2 (read 2026-11)";

constexpr auto accumulator_values = std::to_array<int>({2, 1});
constexpr auto amx_options = std::to_array<UnitOption>(
    {{UnitParameter::accumulators, accumulator_values,
      "Intel's manual sums even and odd k apart, joins them and adds c last (2); Intel's "
      "Intrinsics Guide adds even, then odd k to c (1)"}});

/// VDPBF16PS: c takes the odd product, then the even one, each by one fused multiply-add, ties to
/// even; subnormal operands are zeros and so are subnormal results; MXCSR plays no part.
constexpr MatrixUnit vdpbf16ps() {
  MatrixUnit unit;
  unit.name = "x86.vdpbf16ps.bf16.f32";
  unit.instruction = "VDPBF16PS";
  unit.operation = UnitOperation::fma;
  unit.input = unit.operand = bfloat16;
  unit.output = binary32;
  unit.conversion = OutputConversion::rne_fp32;
  unit.fan_in = 2;
  unit.order = OperandOrder::odd_before_even;
  unit.mode = Mode{.subnormals = Subnormals::flush_both};
  unit.nan_rule = NanRule::propagate;
  unit.nan_code = 0xffc00000;
  unit.source =
      "10^6 results of an AMD EPYC, family 25, model 17 (2026-11), repeated bit for bit; Intel 64 "
      "and IA-32 Architectures Software Developer's Manual, volume 2 (read 2026-11)";
  unit.evidence = Evidence::measured;
  return unit;
}

/// TDPBF16PS and TDPFP16PS: up to 16 pairs in one instruction.
constexpr MatrixUnit amx(std::string_view name, std::string_view instruction, const Format& input,
                         Subnormals subnormals) {
  MatrixUnit unit;
  unit.name = name;
  unit.instruction = instruction;
  unit.operation = UnitOperation::fma;
  unit.input = unit.operand = input;
  unit.output = binary32;
  unit.conversion = OutputConversion::rne_fp32;
  unit.fan_in = 2;
  unit.blocks = 16;
  unit.accumulators = 2;
  unit.addend = Addend::last;
  unit.mode = Mode{.subnormals = subnormals};
  unit.nan_rule = NanRule::propagate;
  unit.nan_code = 0xffc00000;
  unit.options = amx_options;
  unit.note = "no CPU with AMX was at hand; NaN operands are assumed to pass as in VDPBF16PS";
  unit.source = intel_manual;
  unit.evidence = Evidence::documented;
  return unit;
}

/// The manual says of TDPFP16PS that binary16 subnormals are handled and binary32 results flushed.
constexpr MatrixUnit amx_half() {
  MatrixUnit unit = amx("x86.tdpfp16ps.f16.f32", "TDPFP16PS", binary16, Subnormals::flush_results);
  unit.note =
      "no CPU with AMX was at hand; sums are assumed to be those of TDPBF16PS, a "
      "subnormal c to be kept, NaN operands to pass as in VDPBF16PS";
  unit.evidence = Evidence::inferred;
  return unit;
}

constexpr auto rows = std::to_array<MatrixUnit>({
    vdpbf16ps(),
    amx("x86.tdpbf16ps.bf16.f32", "TDPBF16PS", bfloat16, Subnormals::flush_both),
    amx_half(),
});

}  // namespace

std::span<const MatrixUnit> x86_rows() { return rows; }

}  // namespace kvsim::units
