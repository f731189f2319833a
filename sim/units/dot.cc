// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/dot.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/units/block.h"
#include "softfloat/arithmetic.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using units::Pair;

/// The number that is multiplied, from the code in memory. A NaN stays one, even where only the
/// bits that are dropped make it one.
Bits read_operand(const MatrixUnit& unit, Bits code) {
  if (unit.operand == unit.input) return code;
  const softfloat::Rounding rounding = unit.operand_rounding == OperandRounding::truncate
                                           ? softfloat::Rounding::toward_zero
                                           : softfloat::Rounding::ties_to_away;
  return softfloat::convert(unit.input, unit.operand, code, {.rounding = rounding}).bits;
}

Bits scale_at(const MatrixUnit& unit, std::span<const Bits> scales, std::size_t k) {
  return unit.scale_block == 0 ? Bits{0} : scales[k / static_cast<std::size_t>(unit.scale_block)];
}

/// The k that the unit takes as number i of block j.
std::size_t element(const MatrixUnit& unit, std::size_t j, std::size_t i) {
  switch (unit.order) {
    case OperandOrder::odd_before_even:
      return (j * static_cast<std::size_t>(unit.fan_in) + i) ^ 1;
    case OperandOrder::pairs_of_four:
      if (mutant_is_on(Mutant::pairs_of_four_in_turn)) break;
      return 4 * (i / 2) + 2 * j + i % 2;
    case OperandOrder::in_turn:
      break;
  }
  return j * static_cast<std::size_t>(unit.fan_in) + i;
}

Bits block_result(const MatrixUnit& unit, units::Block block, Bits c) {
  switch (unit.operation) {
    case UnitOperation::ftz_add_mul:
      return units::flushing_block(unit, block, c);
    case UnitOperation::e_fdpa:
      return units::exact_block(unit, block, c);
    case UnitOperation::tr_fdpa:
    case UnitOperation::gtr_fdpa:
      return units::rounded_down_block(unit, block, c);
    case UnitOperation::fma:
    case UnitOperation::t_fdpa:
    case UnitOperation::st_fdpa:
    case UnitOperation::gst_fdpa:
      break;
  }
  return units::truncated_block(unit, block, c);
}

/// One instruction on `pairs`, at most fan_in × blocks of them.
class Instruction {
 public:
  Instruction(const MatrixUnit& unit, std::span<const Pair> pairs) : unit_(unit), pairs_(pairs) {}

  [[nodiscard]] Bits run(Bits c) const {
    const bool last = unit_.addend == Addend::last;
    const Bits start = last ? Bits{0} : c;
    const Bits sum = unit_.operation == UnitOperation::fma ? fma_chain(start) : chain(start);
    return last ? units::add_step(unit_, c, sum) : sum;
  }

 private:
  [[nodiscard]] std::size_t fan_in() const { return static_cast<std::size_t>(unit_.fan_in); }

  /// Pairs beyond the end are zeros.
  [[nodiscard]] Pair pair(std::size_t j, std::size_t i) const {
    const std::size_t k = element(unit_, j, i);
    if (k < pairs_.size()) return pairs_[k];
    Pair zero;
    if (!pairs_.empty()) zero.a_scale = pairs_.back().a_scale, zero.b_scale = pairs_.back().b_scale;
    return zero;
  }

  [[nodiscard]] Bits chain(Bits sum) const {
    std::vector<Pair> block(fan_in());
    // What the blocks share between them needs all of them; others end with the operands.
    const std::size_t needed = (pairs_.size() + fan_in() - 1) / fan_in();
    const std::size_t blocks = unit_.order == OperandOrder::pairs_of_four
                                   ? static_cast<std::size_t>(unit_.blocks)
                                   : needed;
    for (std::size_t j = 0; j < blocks; ++j) {
      for (std::size_t i = 0; i < fan_in(); ++i) block[i] = pair(j, i);
      sum = block_result(unit_, block, sum);
    }
    return sum;
  }

  [[nodiscard]] Bits fma_chain(Bits start) const {
    std::vector<Bits> sums(static_cast<std::size_t>(unit_.accumulators), Bits{0});
    sums.front() = start;
    const std::size_t blocks = (pairs_.size() + fan_in() - 1) / fan_in();
    for (std::size_t n = 0; n < blocks * fan_in(); ++n) {
      Bits& sum = sums[n % sums.size()];
      sum = units::fma_step(unit_, pair(n / fan_in(), n % fan_in()), sum);
    }
    Bits joined = sums.front();
    for (std::size_t i = 1; i < sums.size(); ++i) joined = units::add_step(unit_, joined, sums[i]);
    return joined;
  }

  const MatrixUnit& unit_;
  std::span<const Pair> pairs_;
};

}  // namespace

Bits unit_dot(const MatrixUnit& unit, const DotOperands& operands) {
  std::vector<Pair> pairs(operands.a.size());
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    pairs[k] = {read_operand(unit, operands.a[k]), read_operand(unit, operands.b[k]),
                scale_at(unit, operands.a_scales, k), scale_at(unit, operands.b_scales, k)};
  }
  const std::size_t length =
      static_cast<std::size_t>(unit.fan_in) * static_cast<std::size_t>(unit.blocks);
  Bits result = operands.c;
  if (unit.operation == UnitOperation::ftz_add_mul) {
    result = units::flush_operand(unit.output, result);
  }
  for (std::size_t k = 0; k < pairs.size(); k += length) {
    const std::size_t count = std::min(length, pairs.size() - k);
    const Bits addend = mutant_is_on(Mutant::addend_forgotten) ? operands.c : result;
    result = Instruction(unit, std::span(pairs).subspan(k, count)).run(addend);
  }
  return result;
}

}  // namespace kvsim
