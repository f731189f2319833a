// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Operands for matrix units, each addressed by a counter: random codes with specials; finite
/// numbers near one that overlap and cancel; products near the smallest normal number; powers of
/// two, whose sums are ties or just miss them; zeros of both signs.

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

enum class Mix : std::uint8_t { any, near_one, tiny, powers, zeros };
inline constexpr std::uint64_t mixes = 5;

/// The case with this remainder of its counter is of that kind.
constexpr std::uint64_t first_case(Mix kind) { return static_cast<std::uint64_t>(kind); }

/// A finite code with an exponent field in [low, low + count).
inline Bits finite_code(const Format& f, Bits low, Bits count, Bits fraction_mask, Bits word) {
  const Bits top = (Bits{1} << f.exponent_bits) - 2;
  const Bits field = std::min(low + word % count, top);
  const Bits fraction = (word >> 8) & ((Bits{1} << (f.precision - 1)) - 1) & fraction_mask;
  return ((word >> 63) != 0 ? limits(f).sign : 0) | (field << (f.precision - 1)) | fraction;
}

/// A code of one kind, finite but for `any`. `second` of two factors, or neither.
inline Bits mixed_code(const Format& f, Mix kind, bool second, std::uint64_t counter) {
  const Bits word = mix(counter + 1), all = ~Bits{0};
  const auto bias = static_cast<Bits>(std::max(f.bias - 2, 0));
  const bool zero = word % 23 == 0 || (kind == Mix::zeros && word % 4 != 0) ||
                    (kind == Mix::powers && word % 5 == 0);
  if (kind != Mix::any && zero) return (word >> 40) % 2 == 0 ? 0 : limits(f).sign;
  switch (kind) {
    case Mix::near_one:
    case Mix::zeros:
      return finite_code(f, bias, 5, all, word);
    case Mix::tiny:  // times a number near one
      return second ? finite_code(f, bias, 4, all, word) : finite_code(f, 0, 4, all, word);
    case Mix::powers: {
      const Bits reach = std::min<Bits>(bias, 20);
      return finite_code(f, bias + 2 - reach, reach + 1, 0, word);
    }
    case Mix::any:
      break;
  }
  return RandomOperands(f)(counter);
}

/// One case of `k` products, of the kind counter mod mixes.
inline UnitCase unit_case(const MatrixUnit& unit, std::size_t k, std::uint64_t counter) {
  UnitCase out;
  const auto kind = static_cast<Mix>(counter % mixes);
  std::uint64_t at = 4096 * counter;
  for (std::size_t i = 0; i < k; ++i) {
    out.a.push_back(mixed_code(unit.operand, kind, false, at++));
    out.b.push_back(mixed_code(unit.operand, kind, true, at++));
    // Any code would nearly always meet a NaN: most of them are finite here.
    if (kind != Mix::any || mix(at) % 8 == 0) continue;
    for (Bits* x : {&out.a.back(), &out.b.back()}) {
      const Kind what = decode(unit.operand, *x).kind;
      if (what == Kind::nan || what == Kind::infinite) *x &= limits(unit.operand).sign | 1;
    }
  }
  out.c = mixed_code(unit.output, kind, false, at++);
  if (unit.scale_block == 0) return out;
  const auto block = static_cast<std::size_t>(unit.scale_block);
  for (std::size_t i = 0; i < (k + block - 1) / block; ++i) {
    for (std::vector<Bits>* scales : {&out.a_scales, &out.b_scales}) {
      Bits code = mix(at++) & ((Bits{1} << unit.scale.width()) - 1);
      if (kind != Mix::any)
        code = (static_cast<Bits>(unit.scale.bias - 2) + code % 5) << (unit.scale.precision - 1);
      scales->push_back(code);
    }
  }
  return out;
}

}  // namespace kvsim::oracle
