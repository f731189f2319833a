// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cstdint>

#include "sim/units/matrix_unit.h"

namespace kvsim::engine {

/// How the engine computes what a unit does.
enum class UnitPath : std::uint8_t {
  softfloat,     ///< element by element with unit_dot()
  truncated,     ///< t_fdpa in lanes: products scaled to the unit of the largest exponent, cut to
                 ///< int32
  rounded_down,  ///< tr_fdpa in lanes, with double lanes for the rounding of the sum
  fused,         ///< fma in float lanes
};

/// Exponents that lanes take: an operand with a larger one sends its row or column to softfloat.
inline constexpr int largest_lane_exponent = 36;
/// Longest sums in lanes: so many products cannot leave the range of exponents that lanes have.
inline constexpr std::int64_t most_lane_terms = std::int64_t{1} << 20;

/// Everything a kernel needs to know of a unit.
struct UnitPlan {
  UnitPath path = UnitPath::softfloat;
  int fan_in = 1;             ///< L
  int instruction = 1;        ///< k of one instruction: blocks × L
  int fraction_bits = 0;      ///< F
  int kept_bits = 24;         ///< precision of a truncated binary32 result: 24, or 14 of e8m13
  int smallest_exponent = 0;  ///< emin of the numbers that are multiplied
  int largest_exponent = 0;   ///< of finite operands that lanes take
  /// The largest exponent is at least this: the exponent of a zero term, or what lanes represent
  /// where that is larger. A nonzero sum with a smaller largest exponent goes to softfloat.
  int least_exponent = 0;
  int smallest_addend = 0;           ///< lanes take addends of 2^smallest_addend and more, and +0
  int largest_addend = 0;            ///< lanes take addends below 2^largest_addend
  bool takes_negative_zero = false;  ///< as an addend
  int a_scale = 0;                   ///< the packed numbers of a are 2^−a_scale times the real ones
  bool half_output = false;          ///< binary16, ties to even
  bool wide_exponents = false;       ///< operands may lie outside 2^±36
  bool fits_int32 = false;           ///< a block's products and its addend together
  bool addend_last = false;  ///< c is added after the blocks of an instruction, ties to even
  bool final_rounding_down = false;  ///< rounded_down: the total, to 32 bits
  bool flushes_subnormals = false;   ///< fused: operands and results
  OperandOrder order = OperandOrder::in_turn;
  bool converts_operands = false;  ///< binary32 operands become tf32, as `operand_rounding` says
  OperandRounding operand_rounding = OperandRounding::truncate;
};

/// The addends that lanes take: zero and numbers whose last bit no block cuts off and that do not
/// overflow on the way.
struct LaneAddends {
  explicit LaneAddends(const UnitPlan& plan)
      : lowest(exponent_field(plan.smallest_addend)),
        highest(exponent_field(plan.largest_addend)),
        takes_negative_zero(plan.takes_negative_zero) {}

  [[nodiscard]] bool take(float c) const {
    const auto bits = std::bit_cast<std::uint32_t>(c);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    return bits == 0 || (magnitude == 0 && takes_negative_zero) ||
           (magnitude >= lowest && magnitude < highest);
  }
  static std::uint32_t exponent_field(int exponent) {
    return static_cast<std::uint32_t>(exponent + 127) << 23;
  }

  std::uint32_t lowest;   ///< magnitude as a code
  std::uint32_t highest;  ///< excluded
  bool takes_negative_zero;
};

/// The plan for a unit whose operands and results are floats.
[[nodiscard]] UnitPlan plan_unit(const MatrixUnit& unit);

/// The k that the unit takes as number `i` of all that it is given, filled up to whole blocks.
[[nodiscard]] std::int64_t operand_position(const UnitPlan& plan, std::int64_t i);

/// `terms` rounded up to the number of operands that the unit is given.
[[nodiscard]] std::int64_t padded_terms(const UnitPlan& plan, std::int64_t terms);

}  // namespace kvsim::engine
