// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/rows.h"

namespace kvsim::units {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary64;
using softfloat::e4m3;
using softfloat::e5m2;
using softfloat::tf32;

// F, and the exponent of a zero: with binary32 output, with binary16 output, with 8-bit inputs.
constexpr Generation volta{23, -131};
constexpr Generation volta_half{23, -20};
constexpr Generation turing{24, -132};
constexpr Generation turing_half{24, -21};
constexpr Generation ampere{24, -132};
constexpr Generation ampere_half{24, -21};
constexpr Generation ada_8bit{13, -132};
constexpr Generation ada_8bit_half{13, -21};

constexpr std::string_view volta_mma = "mma.sync.m8n8k4";
constexpr std::string_view turing_mma = "mma.sync.m16n8k8";
constexpr std::string_view k16 = "mma.sync.m16n8k16";
constexpr std::string_view tf32_k8 = "mma.sync.m16n8k8";
constexpr std::string_view fp8_k32 = "mma.sync.m16n8k32";

constexpr std::string_view hidden_fraction =
    "the hardware rows do not show F and the zero exponent: binary16 output hides them";
constexpr std::string_view volta_order = "that WMMA's k16 is four of these in turn is assumed";

constexpr MatrixUnit fp8_to_f32(std::string_view name, const softfloat::Format& input) {
  return measured(
      with_conversion(to_f32(name, ada_8bit, input, 16, 2, fp8_k32), OutputConversion::rz_e8m13));
}

constexpr MatrixUnit fp8_to_f16(std::string_view name, const softfloat::Format& input) {
  return with_options(measured(to_f16(name, ada_8bit_half, input, 16, 2, fp8_k32)),
                      ampere_half_options);
}

// name, generation, input, L, blocks, instruction
constexpr auto rows = std::to_array<MatrixUnit>({
    with_options(measured(to_f32("v100.mma.f16.f32", volta, binary16, 4, 1, volta_mma)), {},
                 volta_order),
    with_options(measured(to_f16("v100.mma.f16.f16", volta_half, binary16, 4, 1, volta_mma)),
                 volta_half_options, hidden_fraction),

    as_default(to_f32("t4.mma.f16.f32", turing, binary16, 8, 1, turing_mma)),
    with_options(as_default(to_f16("t4.mma.f16.f16", turing_half, binary16, 8, 1, turing_mma)),
                 ampere_half_options),

    fma_row("a100.mma.f64.f64", binary64, "mma.sync.m8n8k4", 4),
    with_options(measured(to_f32("a100.mma.tf32.f32", ampere, tf32, 4, 2, tf32_k8)),
                 operand_options),
    measured(to_f32("a100.mma.bf16.f32", ampere, bfloat16, 8, 2, k16)),
    measured(to_f32("a100.mma.f16.f32", ampere, binary16, 8, 2, k16)),
    with_options(measured(to_f16("a100.mma.f16.f16", ampere_half, binary16, 8, 2, k16)),
                 ampere_half_options, hidden_fraction),

    with_options(measured(to_f32("ada.mma.tf32.f32", ampere, tf32, 4, 2, tf32_k8)),
                 operand_options),
    measured(to_f32("ada.mma.bf16.f32", ampere, bfloat16, 8, 2, k16)),
    measured(to_f32("ada.mma.f16.f32", ampere, binary16, 8, 2, k16)),
    with_options(measured(to_f16("ada.mma.f16.f16", ampere_half, binary16, 8, 2, k16)),
                 ampere_half_options, hidden_fraction),
    fp8_to_f32("ada.mma.e4m3.f32", e4m3),
    fp8_to_f32("ada.mma.e5m2.f32", e5m2),
    fp8_to_f16("ada.mma.e4m3.f16", e4m3),
    fp8_to_f16("ada.mma.e5m2.f16", e5m2),
});

}  // namespace

std::span<const MatrixUnit> volta_to_ada_rows() { return rows; }

}  // namespace kvsim::units
