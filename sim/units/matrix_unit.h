// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"
#include "softfloat/rounding.h"

/// Matrix units as data: what one instruction of a GPU or CPU computes, d = c + Σ a[k]·b[k], as a
/// row of parameters of one of eight operations. Sources: MMA-Sim v2 (arXiv:2511.10909), Accurate
/// Models of NVIDIA Tensor Cores (arXiv:2512.07004), Intel's manual; docs/units.md.
namespace kvsim {

/// How one block of products and the addend become one number. Names as in MMA-Sim v2, table 1
/// (FDPA: fused dot product and add).
enum class UnitOperation : std::uint8_t {
  fma,          ///< a chain of fused multiply-adds, each rounded
  ftz_add_mul,  ///< products and sums rounded one by one, subnormals flushed, sums in pairs
  e_fdpa,       ///< exact sum of the products and the addend, rounded once
  t_fdpa,       ///< all terms aligned to the largest exponent, truncated to F bits, summed exactly
  st_fdpa,      ///< t_fdpa, with the exponents of block scales added to those of the products
  gst_fdpa,     ///< exact sums of groups, scaled, then t_fdpa over the groups and the addend
  tr_fdpa,      ///< truncated sum of the products; with the addend rounded down, then once more
  gtr_fdpa,     ///< tr_fdpa, with even and odd k truncated apart
};

/// The format and the rounding of a block's result.
enum class OutputConversion : std::uint8_t {
  rz_fp32,   ///< binary32, truncated; overflow gives infinity
  rz_e8m13,  ///< the same with 13 fraction bits: the low 10 bits of the binary32 are zero
  rne_fp16,  ///< binary16, ties to even
  rne_fp32,  ///< binary32, ties to even
  rne_fp64,  ///< binary64, ties to even
};

/// Which k an instruction's blocks take.
enum class OperandOrder : std::uint8_t {
  in_turn,          ///< block j takes k = j·L … j·L + L − 1
  odd_before_even,  ///< the same, but within each pair the odd k comes first
  pairs_of_four,    ///< block 0 takes k mod 4 = 0 and 1, block 1 takes 2 and 3
};

/// Where the addend c enters an instruction.
enum class Addend : std::uint8_t {
  first,  ///< it is a term of the first block
  last,   ///< the blocks start from +0; c is added at the end by one addition, ties to even
};

/// What becomes of a 32-bit operand of a unit that multiplies 19-bit numbers. (Where 8-bit operands
/// become 16-bit inputs the conversion is exact.)
enum class OperandRounding : std::uint8_t {
  truncate,           ///< the low 13 bits are dropped (what the instruction itself does)
  nearest_ties_away,  ///< the kernel rounds before (cvt.rna.tf32.f32)
};

/// Which NaN a unit returns.
enum class NanRule : std::uint8_t {
  fixed,      ///< always MatrixUnit::nan_code
  propagate,  ///< x86: the first NaN of a, b, c, made quiet; nan_code where an operation made it
};

/// A parameter of a unit for which more than one value is plausible.
enum class UnitParameter : std::uint8_t {
  zero_exponent,
  fraction_bits,
  operand_rounding,
  accumulators,
  final_rounding_down,
};

/// One open parameter: the values that sources give, the one chosen first, and why it is open.
struct UnitOption {
  UnitParameter parameter;
  std::span<const int> accepted;
  std::string_view reason;
};

/// One row: everything that fixes the bits of d.
struct MatrixUnit {
  std::string_view name;         ///< device.instruction.input.output: "h100.wgmma.e4m3.f32"
  std::string_view instruction;  ///< in the vendor's words, with its shape
  UnitOperation operation = UnitOperation::t_fdpa;
  softfloat::Format input;    ///< of the numbers that are multiplied
  softfloat::Format operand;  ///< of the codes in memory; converted to `input` where it differs
  softfloat::Format output;   ///< of c and d
  OutputConversion conversion = OutputConversion::rz_fp32;
  int fan_in = 1;         ///< L: products of one block
  int blocks = 1;         ///< blocks of one instruction, whose K is blocks × L
  int fraction_bits = 0;  ///< F: bits kept below the unit of the largest exponent
  int final_bits = 0;     ///< F2 of tr_fdpa and gtr_fdpa
  int zero_exponent = 0;  ///< the exponent with which a zero term takes part in the alignment
  OperandOrder order = OperandOrder::in_turn;
  Addend addend = Addend::first;
  int accumulators = 1;  ///< fma: term i goes to accumulator i mod this; they are joined at the end
  bool final_rounding_down = true;  ///< tr_fdpa, gtr_fdpa: the sum is rounded down once more at F2
  OperandRounding operand_rounding = OperandRounding::truncate;
  softfloat::Mode mode;     ///< fma: what happens to subnormals
  softfloat::Format scale;  ///< st_fdpa, gst_fdpa: format of the block scales
  int scale_block = 0;      ///< elements that share a scale; 0 without scales
  NanRule nan_rule = NanRule::fixed;
  softfloat::Bits nan_code = 0;
  bool is_default = false;  ///< what device.input.output means, without an instruction
  std::span<const UnitOption> options;
  std::string_view note;    ///< what the evidence leaves open; may be empty
  std::string_view source;  ///< document and date
  softfloat::Evidence evidence = softfloat::Evidence::inferred;
};

/// The scale of NVFP4: e4m3 without a sign, 7 bits.
inline constexpr softfloat::Format ue4m3{4, 4, 7, softfloat::Specials::nan_only, false};

/// Every unit, device by device, in the order in which they are listed to the user.
[[nodiscard]] std::span<const MatrixUnit> matrix_units();

/// The row with this name. Accepted beside the canonical name: device.input.output for the
/// instruction with MatrixUnit::is_default, and other devices of the same generation
/// ("h200.f16.f32"). nullptr if there is none.
[[nodiscard]] const MatrixUnit* find_matrix_unit(std::string_view name);

/// Every other name that find_matrix_unit accepts for this row.
[[nodiscard]] std::vector<std::string> unit_aliases(const MatrixUnit& unit);

/// A unit by its name and, in brackets, values for its open parameters:
/// "a100.mma.f16.f16(zero_exponent=-20)". Errors (usage) name the text, what is accepted and the
/// near name.
[[nodiscard]] Result<MatrixUnit> parse_matrix_unit(std::string_view text);

/// The canonical text of a unit: its name, and in brackets what differs from its row.
[[nodiscard]] std::string to_string(const MatrixUnit& unit);

/// "T-FDPA", as printed.
[[nodiscard]] std::string_view to_string(UnitOperation operation);
/// "RZ-FP32", as printed.
[[nodiscard]] std::string_view to_string(OutputConversion conversion);
/// The parameter's name, as written in brackets behind a unit's name.
[[nodiscard]] std::string_view to_string(UnitParameter parameter);
/// A value of a parameter as it is written: "-20", "truncate".
[[nodiscard]] std::string parameter_text(UnitParameter parameter, int value);
/// The value that the unit has.
[[nodiscard]] int parameter_value(const MatrixUnit& unit, UnitParameter parameter);

/// The name of a format within a unit's name: "f16", "bf16", "tf32", "e4m3".
[[nodiscard]] std::string_view unit_format_name(const softfloat::Format& format);

}  // namespace kvsim
