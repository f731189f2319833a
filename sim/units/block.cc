// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/block.h"

#include <array>
#include <cstddef>

#include "softfloat/arithmetic.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"

namespace kvsim::units {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;

Conversion conversion_of(const MatrixUnit& unit) {
  constexpr Mode truncating{.rounding = softfloat::Rounding::toward_zero,
                            .overflow = softfloat::Overflow::infinity};
  switch (unit.conversion) {
    case OutputConversion::rz_fp32:
      return {softfloat::binary32, truncating};
    case OutputConversion::rz_e8m13:
      return {softfloat::e8m13, truncating,
              softfloat::binary32.trailing_bits() - softfloat::e8m13.trailing_bits()};
    case OutputConversion::rne_fp16:
      return {softfloat::binary16, {}};
    case OutputConversion::rne_fp32:
      return {softfloat::binary32, {}};
    case OutputConversion::rne_fp64:
      break;
  }
  return {softfloat::binary64, {}};
}

Bits with_unit_nan(const MatrixUnit& unit, Bits code) {
  return softfloat::is_nan(unit.output, code) ? unit.nan_code : code;
}

Bits exact_block(const MatrixUnit& unit, Block block, Bits c) {
  softfloat::ExactAccumulator sum;
  for (const Pair& pair : block) sum.add_product(unit.input, pair.a, unit.input, pair.b);
  sum.add(unit.output, c);
  const Bits code = sum.round(unit.output).bits;
  if (softfloat::is_zero(unit.output, code)) {
    // A tiny sum that rounds to zero keeps its sign; an exact zero is +0.
    const bool exact_zero = sum.value().kind == softfloat::Class::zero;
    return exact_zero ? Bits{0} : code;
  }
  return with_unit_nan(unit, code);
}

namespace {

/// A result below the smallest normal number becomes zero of its sign, after it was rounded.
Bits flush_result(const Format& format, Bits code) {
  return softfloat::is_subnormal(format, code) ? code & format.sign_bit() : code;
}

Bits flushing_add(const MatrixUnit& unit, Bits x, Bits y) {
  return flush_result(unit.output, softfloat::add(unit.output, x, y).bits);
}

/// The product of two operands in the output format, rounded once.
Bits flushing_product(const MatrixUnit& unit, const Pair& pair) {
  softfloat::ExactAccumulator product;
  product.add_product(unit.input, flush_operand(unit.input, pair.a), unit.input,
                      flush_operand(unit.input, pair.b));
  return flush_result(unit.output, product.round(unit.output).bits);
}

}  // namespace

Bits flush_operand(const Format& format, Bits a) {
  return softfloat::is_subnormal(format, a) || softfloat::is_zero(format, a) ? Bits{0} : a;
}

Bits flushing_block(const MatrixUnit& unit, Block block, Bits c) {
  std::array<Bits, 2> sums{};
  for (std::size_t i = 0; i < 2; ++i) {
    // A block that is not full is filled with zeros.
    const Pair left = 2 * i < block.size() ? block[2 * i] : Pair{};
    const Pair right = 2 * i + 1 < block.size() ? block[2 * i + 1] : Pair{};
    sums[i] = flushing_add(unit, flushing_product(unit, left), flushing_product(unit, right));
  }
  const Bits sum = unit.fan_in == 2 ? sums[0] : flushing_add(unit, sums[0], sums[1]);
  return with_unit_nan(unit, flushing_add(unit, c, sum));
}

namespace {

/// The NaN that an x86 instruction returns for these operands; `code` where it is no NaN.
Bits x86_nan(const MatrixUnit& unit, Bits code, std::span<const Bits> operands) {
  const Format& format = unit.output;
  if (!softfloat::is_nan(format, code)) return code;
  if (unit.nan_rule == NanRule::fixed) return unit.nan_code;
  for (const Bits operand : operands) {
    if (softfloat::is_nan(format, operand)) {
      return operand | (Bits{1} << (format.trailing_bits() - 1));
    }
  }
  return unit.nan_code;
}

/// A number of the input format as a code of the output format, exact; NaN keeps its payload.
Bits widen(const MatrixUnit& unit, Bits a) {
  if (unit.input == unit.output) return a;
  if (softfloat::is_nan(unit.input, a)) {
    const Bits payload = (a & unit.input.trailing_mask())
                         << (unit.output.trailing_bits() - unit.input.trailing_bits());
    const Bits sign = (a & unit.input.sign_bit()) != 0 ? unit.output.sign_bit() : Bits{0};
    return sign | unit.output.infinity() | payload;
  }
  return softfloat::convert(unit.output, unit.input, a).bits;
}

}  // namespace

Bits fma_step(const MatrixUnit& unit, const Pair& pair, Bits c) {
  // Input subnormals are those of the input format: one of binary16 is normal in binary32.
  const std::array<Bits, 3> operands{widen(unit, pair.a), widen(unit, pair.b), c};
  const Bits code =
      softfloat::fma(unit.output, operands[0], operands[1], operands[2], unit.mode).bits;
  return x86_nan(unit, code, operands);
}

Bits add_step(const MatrixUnit& unit, Bits x, Bits y) {
  const std::array<Bits, 2> operands{x, y};
  return x86_nan(unit, softfloat::add(unit.output, x, y, unit.mode).bits, operands);
}

}  // namespace kvsim::units
