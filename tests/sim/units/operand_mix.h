// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Operands for matrix units: random codes with specials, or finite numbers near one that overlap
/// and cancel, or tiny ones; each addressed by a counter.

#include <cstdint>
#include <vector>

#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "tests/softfloat/operands.h"
#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {

/// The operands of one element, kept alive.
struct UnitCase {
  std::vector<Bits> a, b, a_scales, b_scales;
  Bits c = 0;

  [[nodiscard]] DotOperands operands() const { return {a, b, c, a_scales, b_scales}; }
};

enum class Mix : std::uint8_t { any, near_one, tiny };

/// A code of one kind; `near_one` and `tiny` are finite.
inline Bits mixed_code(const Format& f, Mix kind, std::uint64_t counter) {
  const Bits any = RandomOperands(f)(counter);
  const Limits l = limits(f);
  const Bits word = mix(counter + 1);
  if (kind == Mix::any) return any;
  const Bits top = (Bits{1} << f.exponent_bits) - 1;
  Bits field =
      kind == Mix::near_one ? static_cast<Bits>(std::max(f.bias - 2, 0)) + word % 5 : word % 3;
  if (word % 23 == 0) return (word >> 40) % 2 == 0 ? 0 : l.sign;
  field = std::min(field, top - 1);
  const Bits fraction = (word >> 8) & ((Bits{1} << (f.precision - 1)) - 1);
  return ((word >> 63) != 0 ? l.sign : 0) | (field << (f.precision - 1)) | fraction;
}

/// One case of `k` products. One in three is any code, one near one, one tiny.
inline UnitCase unit_case(const MatrixUnit& unit, std::size_t k, std::uint64_t counter) {
  UnitCase out;
  const auto kind = static_cast<Mix>(counter % 3);
  std::uint64_t at = 4096 * counter;
  for (std::size_t i = 0; i < k; ++i) {
    out.a.push_back(mixed_code(unit.operand, kind, at++));
    out.b.push_back(mixed_code(unit.operand, kind, at++));
    // Any code would nearly always meet a NaN: most of them are finite here.
    if (kind != Mix::any || mix(at) % 8 == 0) continue;
    for (Bits* x : {&out.a.back(), &out.b.back()}) {
      const Kind what = decode(unit.operand, *x).kind;
      if (what == Kind::nan || what == Kind::infinite) *x &= limits(unit.operand).sign | 1;
    }
  }
  out.c = mixed_code(unit.output, kind, at++);
  if (unit.scale_block == 0) return out;
  const auto block = static_cast<std::size_t>(unit.scale_block);
  for (std::size_t i = 0; i < (k + block - 1) / block; ++i) {
    for (std::vector<Bits>* scales : {&out.a_scales, &out.b_scales}) {
      Bits code = mix(at++) & ((Bits{1} << unit.scale.width()) - 1);
      if (kind != Mix::any)
        code = static_cast<Bits>(unit.scale.bias - 2 + code % 5) << (unit.scale.precision - 1);
      scales->push_back(code);
    }
  }
  return out;
}

}  // namespace kvsim::oracle
