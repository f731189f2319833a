// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/unit_plan.h"

#include <algorithm>

#include "softfloat/formats.h"
#include "softfloat/mutants.h"

namespace kvsim::engine {
namespace {

constexpr int narrow_largest = 36;    ///< products lie below 2^36
constexpr int narrow_smallest = -60;  ///< the last bits of products are 2^−60 or more
constexpr int lane_group = 16;        ///< products that are summed in one int32

bool truncated_in_lanes(const MatrixUnit& unit) {
  if (unit.operation != UnitOperation::t_fdpa || unit.scale_block != 0) return false;
  const bool output = unit.conversion == OutputConversion::rz_fp32 ||
                      unit.conversion == OutputConversion::rz_e8m13 ||
                      unit.conversion == OutputConversion::rne_fp16;
  // A product of two such numbers is a float; a subnormal of binary16 sets no least exponent.
  if (!output || 2 * unit.input.precision > 24 || unit.input.emax() > 127) return false;
  if (unit.output == softfloat::binary16 && unit.zero_exponent > unit.output.emin()) return false;
  const bool order =
      unit.order == OperandOrder::in_turn ||
      (unit.order == OperandOrder::pairs_of_four && unit.fan_in == 16 && unit.blocks == 2);
  // Sixteen products of less than 2^(F + 2) fit an int32.
  // Two groups of 16 and the addend share an int32 in between: 4-bit significands leave room.
  if (unit.fan_in > lane_group && unit.fraction_bits > 24 && unit.input.precision > 4) return false;
  const bool fan_in =
      unit.fan_in == 4 || unit.fan_in == 8 || unit.fan_in == 16 || unit.fan_in == 32;
  return order && fan_in && unit.fraction_bits >= 8 && unit.fraction_bits <= 25;
}

/// fan_in × 2^(F + 2) + 2^(F + 1) ≤ 2^31
bool sum_fits_int32(const MatrixUnit& unit) {
  const std::int64_t largest = (std::int64_t{unit.fan_in} << (unit.fraction_bits + 2)) +
                               (std::int64_t{1} << (unit.fraction_bits + 1));
  return largest <= std::int64_t{1} << 31;
}

/// TR-FDPA with the parameters of CDNA3.
bool rounded_down_in_lanes(const MatrixUnit& unit) {
  return unit.operation == UnitOperation::tr_fdpa && unit.scale_block == 0 &&
         unit.conversion == OutputConversion::rne_fp32 && 2 * unit.input.precision <= 24 &&
         unit.input.emax() <= 127 && unit.order == OperandOrder::in_turn &&
         unit.addend == Addend::first && (unit.fan_in == 4 || unit.fan_in == 8) &&
         unit.fraction_bits == 24 && unit.final_bits == 31;
}

/// A chain of fused multiply-adds with the arithmetic of float lanes. Only bfloat16 may flush
/// subnormals: a sum of its larger products has no last bit below the smallest normal number.
bool fused_in_lanes(const MatrixUnit& unit) {
  const bool flushes = unit.mode.subnormals == softfloat::Subnormals::flush_both;
  const bool subnormals = flushes ? unit.input == softfloat::bfloat16
                                  : unit.mode.subnormals == softfloat::Subnormals::keep;
  return unit.operation == UnitOperation::fma && unit.conversion == OutputConversion::rne_fp32 &&
         unit.operand == unit.input && unit.accumulators == 1 && unit.addend == Addend::first &&
         unit.order != OperandOrder::pairs_of_four && subnormals;
}

UnitPlan plan_fused(const MatrixUnit& unit) {
  UnitPlan plan;
  plan.path = UnitPath::fused;
  plan.fan_in = unit.fan_in;
  plan.instruction = unit.fan_in * unit.blocks;
  plan.smallest_exponent = unit.input.emin();
  plan.flushes_subnormals = unit.mode.subnormals == softfloat::Subnormals::flush_both;
  plan.takes_negative_zero = true;
  // The last bit of a larger addend is that of a normal number; 2^129 is beyond every code.
  plan.smallest_addend = plan.flushes_subnormals ? -103 : -127;
  plan.largest_addend = 129;
  plan.order = unit.order;
  return plan;
}

}  // namespace

UnitPlan plan_unit(const MatrixUnit& unit) {
  UnitPlan plan;
  if (fused_in_lanes(unit)) return plan_fused(unit);
  if (!truncated_in_lanes(unit) && !rounded_down_in_lanes(unit)) return plan;
  const bool down = unit.operation == UnitOperation::tr_fdpa;
  plan.path = down ? UnitPath::rounded_down : UnitPath::truncated;
  plan.final_rounding_down = unit.final_rounding_down;
  plan.fan_in = unit.fan_in;
  plan.instruction = unit.fan_in * unit.blocks;
  plan.fraction_bits = unit.fraction_bits - (mutant_is_on(Mutant::engine_keeps_fewer_bits) ? 1 : 0);
  plan.kept_bits = unit.conversion == OutputConversion::rz_e8m13 ? softfloat::e8m13.precision
                                                                 : softfloat::binary32.precision;
  plan.smallest_exponent = unit.input.emin();
  plan.largest_exponent = std::min(largest_lane_exponent, unit.input.emax());
  plan.half_output = unit.conversion == OutputConversion::rne_fp16;
  const int largest_product = 2 * unit.input.emax() + 1;
  const int smallest_product = 2 * (unit.input.emin() - unit.input.trailing_bits());
  plan.wide_exponents = largest_product > narrow_largest || smallest_product < narrow_smallest;
  // Narrow: with e the largest exponent, F + a_scale − e lies in 0 … 126 for smallest_addend ≤ e ≤
  // 57, and 2^20 products and the first addend stay below 2^57. Wide: products with e ≥ −90 are
  // normal floats, and products that are not cannot be the largest.
  constexpr int narrow_top = 57;
  plan.smallest_addend = plan.wide_exponents ? -90 : narrow_top - 126;
  plan.largest_addend = plan.wide_exponents ? 100 : narrow_top - 1;
  plan.a_scale = plan.wide_exponents ? 0 : narrow_top - unit.fraction_bits;
  plan.least_exponent =
      down ? plan.smallest_addend : std::max(unit.zero_exponent, plan.smallest_addend);
  plan.fits_int32 = sum_fits_int32(unit);
  plan.addend_last = unit.addend == Addend::last;
  plan.order = unit.order;
  plan.converts_operands = unit.operand == softfloat::binary32 && unit.input == softfloat::tf32;
  plan.operand_rounding = unit.operand_rounding;
  return plan;
}

std::int64_t operand_position(const UnitPlan& plan, std::int64_t i) {
  switch (plan.order) {
    case OperandOrder::odd_before_even:
      return i ^ 1;
    case OperandOrder::pairs_of_four: {
      const std::int64_t start = i / plan.instruction * plan.instruction;
      const std::int64_t block = (i - start) / plan.fan_in;
      const std::int64_t within = (i - start) % plan.fan_in;
      return start + 4 * (within / 2) + 2 * block + within % 2;
    }
    case OperandOrder::in_turn:
      break;
  }
  return i;
}

std::int64_t padded_terms(const UnitPlan& plan, std::int64_t terms) {
  const std::int64_t unit =
      plan.order == OperandOrder::pairs_of_four ? plan.instruction : plan.fan_in;
  return (terms + unit - 1) / unit * unit;
}

}  // namespace kvsim::engine
