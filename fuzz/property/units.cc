// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "fuzz/property/wide_number.h"
#include "sim/engine/matrix.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// A unit without block scales, and the operands of one output element.
struct UnitCase {
  const MatrixUnit* unit = nullptr;
  Factors factors;
  Bits c = 0;

  [[nodiscard]] Bits result() const {
    return unit_dot(*unit, {.a = factors.a, .b = factors.b, .c = c});
  }
  [[nodiscard]] double value(Bits d) const { return softfloat::to_double(unit->output, d); }
};

/// Exponents near 0, which no unit treats in a way of its own.
Exponents exponents_of(const Format& format) {
  return {std::max(-4, format.emin()), std::min(3, format.emax())};
}

UnitCase draw_case(Random& random, std::int64_t terms) {
  UnitCase result;
  do {
    result.unit = &one_of(random, matrix_units());
  } while (result.unit->scale_block > 0);
  const Format& operand = result.unit->operand;
  result.factors = draw_factors(random, operand, terms, exponents_of(operand));
  if (!random.once_in(3)) {
    result.c = draw_number(random, result.unit->output, {.lowest = -4, .highest = 6});
  }
  return result;
}

std::int64_t draw_terms(Random& random) { return random.between(1, 80); }

std::string case_text(const UnitCase& operands) {
  return fmt::format("{}: c {}, {}", operands.unit->name,
                     code_text(operands.unit->output, operands.c), to_text(operands.factors));
}

/// Which numbers of a block may change places: its fused sum has no order. 1: all; 2: those of even
/// k, and those of odd k; 0: none.
int interchangeable(const MatrixUnit& unit) {
  switch (unit.operation) {
    case UnitOperation::e_fdpa:
    case UnitOperation::t_fdpa:
    case UnitOperation::st_fdpa:
    case UnitOperation::gst_fdpa:
    case UnitOperation::tr_fdpa:
      return 1;
    case UnitOperation::gtr_fdpa:
      return 2;
    case UnitOperation::fma:
    case UnitOperation::ftz_add_mul:
      break;
  }
  return 0;
}

Violation blocks_have_no_order(PropertyInput& input) {
  UnitCase operands;
  int step = 0;
  while (step == 0) {
    operands = draw_case(input.random, draw_terms(input.random));
    // Other orders than this one take other k into a block.
    const bool in_turn = operands.unit->order == OperandOrder::in_turn;
    step = in_turn ? interchangeable(*operands.unit) : 0;
  }
  const Bits before = operands.result();
  const auto block = static_cast<std::size_t>(operands.unit->fan_in);
  const auto stride = static_cast<std::size_t>(step);
  const Factors original = operands.factors;
  for (std::size_t begin = 0; begin < original.a.size(); begin += block) {
    const std::size_t end = std::min(begin + block, original.a.size());
    for (std::size_t first = begin; first < std::min(begin + stride, end); ++first) {
      const std::size_t count = (end - first - 1) / stride + 1;
      const auto moved = draw_permutation(input.random, count);
      for (std::size_t i = 0; i < count; ++i) {
        operands.factors.a[first + i * stride] = original.a[first + moved[i] * stride];
        operands.factors.b[first + i * stride] = original.b[first + moved[i] * stride];
      }
    }
  }
  const Bits after = operands.result();
  if (after == before) return std::nullopt;
  return fmt::format("{}: {}, with the terms of each block in another order {}",
                     case_text(operands), code_text(operands.unit->output, before),
                     code_text(operands.unit->output, after));
}

Violation signs_are_symmetric(PropertyInput& input) {
  UnitCase operands;
  do {
    operands = draw_case(input.random, draw_terms(input.random));
  } while (operands.unit->operation == UnitOperation::tr_fdpa ||
           operands.unit->operation == UnitOperation::gtr_fdpa);
  const Bits d = operands.result();
  for (Bits& a : operands.factors.a) a = softfloat::negate(operands.factors.format, a);
  operands.c = softfloat::negate(operands.unit->output, operands.c);
  const Bits negative = operands.result();
  if (operands.value(negative) == -operands.value(d)) return std::nullopt;
  return fmt::format("{}: {}, not the negative of {}, where a and c are", case_text(operands),
                     code_text(operands.unit->output, negative),
                     code_text(operands.unit->output, d));
}

Violation powers_of_two_scale(PropertyInput& input) {
  UnitCase operands;
  do {
    operands = draw_case(input.random, 1);
  } while (operands.unit->operand.emax() < 8);
  const Format& operand = operands.unit->operand;
  // What cancels in binary16 must not get subnormal and inexact, nor sums too large.
  const int lowest = operands.unit->output == softfloat::binary16 ? 0 : -4;
  operands.factors = draw_factors(input.random, operand, input.random.between(1, 80),
                                  {.lowest = lowest, .highest = lowest + 1});
  const Bits d = operands.result();
  const auto k = static_cast<Bits>(input.random.between(1, 3));
  UnitCase scaled = operands;
  for (Bits& a : scaled.factors.a) a += k << operand.trailing_bits();
  if (scaled.c != 0) scaled.c += k << operands.unit->output.trailing_bits();
  const Bits result = scaled.result();
  if (operands.value(result) == std::ldexp(operands.value(d), static_cast<int>(k))) {
    return std::nullopt;
  }
  return fmt::format("{}: {}, with a and c times 2^{} {}", case_text(operands),
                     code_text(operands.unit->output, d), k,
                     code_text(operands.unit->output, result));
}

Violation zeros_change_nothing(PropertyInput& input) {
  UnitCase operands = draw_case(input.random, draw_terms(input.random));
  const Bits d = operands.result();
  const auto length = static_cast<std::size_t>(operands.unit->fan_in) *
                      static_cast<std::size_t>(operands.unit->blocks);
  const auto more = static_cast<std::size_t>(input.random.between(0, 2));
  const std::size_t padded = ((operands.factors.a.size() - 1) / length + 1 + more) * length;
  const UnitCase before = operands;
  operands.factors.a.resize(padded);
  operands.factors.b.resize(padded);
  const Bits after = operands.result();
  if (operands.value(after) == operands.value(d)) return std::nullopt;
  return fmt::format("{}: {}, filled up with zeros to {} terms {}", case_text(before),
                     code_text(operands.unit->output, d), padded,
                     code_text(operands.unit->output, after));
}

/// c + Σ a·b of a block, rounded once as the unit converts it, where `to` is IEEE-style.
double block_by_mpfr(const UnitCase& operands, const Format& to, mpfr_rnd_t rounding) {
  constexpr mpfr_prec_t bits = 512;
  WideNumber sum(bits, operands.value(operands.c));
  const Format& format = operands.factors.format;
  for (std::size_t k = 0; k < operands.factors.a.size(); ++k) {
    WideNumber product(bits, softfloat::to_double(format, operands.factors.a[k]));
    mpfr_mul_d(product.get(), product.get(), softfloat::to_double(format, operands.factors.b[k]),
               MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), product.get(), MPFR_RNDN);
  }
  WideNumber rounded(to.precision);
  const int ternary = mpfr_set(rounded.get(), sum.get(), rounding);
  return in_range_of(to, rounded, ternary, rounding);
}

Violation wide_alignment_is_exact(PropertyInput& input) {
  UnitCase operands;
  do {
    operands = draw_case(input.random, 1);
  } while (operands.unit->operation != UnitOperation::t_fdpa ||
           operands.unit->operand != operands.unit->input);
  const MatrixUnit& row = *operands.unit;
  const Format& operand = row.operand;
  operands.factors = draw_factors(input.random, operand, input.random.between(1, row.fan_in),
                                  exponents_of(operand));
  MatrixUnit wide = row;
  wide.fraction_bits = 60;  // the most; products and c have their last bits at 2^-50 or above
  wide.order = OperandOrder::in_turn;
  wide.addend = Addend::first;
  operands.unit = &wide;
  const bool truncates =
      row.conversion == OutputConversion::rz_fp32 || row.conversion == OutputConversion::rz_e8m13;
  const Format& to = row.conversion == OutputConversion::rz_e8m13 ? softfloat::e8m13 : row.output;
  const double expected = block_by_mpfr(operands, to, truncates ? MPFR_RNDZ : MPFR_RNDN);
  const Bits d = operands.result();
  if (operands.value(d) == expected) return std::nullopt;
  return fmt::format("{} with 60 bits: {}, not {:a}", case_text(operands), code_text(row.output, d),
                     expected);
}

/// Every e with which 2^e and 2^(e − F − 1) are products of powers of two and results.
struct ExponentRange {
  int lowest = 0;
  int highest = -1;
};
ExponentRange largest_terms(const MatrixUnit& unit) {
  const int below = unit.fraction_bits + 1;
  return {std::max({2 * unit.operand.emin(), unit.output.emin(), -below}) + below,
          std::min({2 * unit.operand.emax(), unit.output.emax(), 30})};
}

/// x, −x and 2^-(F + 1) of x in one block: what the block keeps of the last one.
Violation one_more_bit_is_seen(PropertyInput& input) {
  UnitCase operands;
  ExponentRange range;
  do {
    operands.unit = &one_of(input.random, matrix_units());
    range = largest_terms(*operands.unit);
  } while (operands.unit->operation != UnitOperation::t_fdpa ||
           operands.unit->order != OperandOrder::in_turn || operands.unit->fan_in < 3 ||
           range.lowest > range.highest);
  const MatrixUnit row = *operands.unit;
  const Format& operand = row.operand;
  const auto power = [&](int e) {
    return static_cast<Bits>(e + operand.bias) << operand.trailing_bits();
  };
  const int largest = static_cast<int>(input.random.between(range.lowest, range.highest));
  const int lost = largest - row.fraction_bits - 1;
  operands.factors.format = operand;
  const auto places = draw_permutation(input.random, static_cast<std::size_t>(row.fan_in));
  operands.factors.a.assign(places.size(), 0);
  operands.factors.b.assign(places.size(), 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const int e = i < 2 ? largest : lost;
    const int half = e / 2;
    const Bits a = power(half);
    operands.factors.a[places[i]] = i == 1 ? softfloat::negate(operand, a) : a;
    operands.factors.b[places[i]] = power(e - half);
  }
  for (const int more : {0, 1}) {
    MatrixUnit unit = row;
    unit.fraction_bits += more;
    operands.unit = &unit;
    const Bits d = operands.result();
    const double expected = more == 0 ? 0 : std::ldexp(1, lost);
    if (operands.value(d) == expected) continue;
    return fmt::format("{} with {} bits: {}, not {:a}", case_text(operands), unit.fraction_bits,
                       code_text(unit.output, d), expected);
  }
  return std::nullopt;
}

Violation unit_engine_is_reference(PropertyInput& input) {
  UnitCase operands = draw_case(input.random, draw_terms(input.random));
  const MatrixUnit& unit = *operands.unit;
  if (unit.output.precision > softfloat::binary32.precision ||
      unit.operand.precision > softfloat::binary32.precision) {
    return std::nullopt;  // the engine computes with floats
  }
  const std::int64_t columns = input.random.between(1, 20);
  const auto terms = static_cast<std::int64_t>(operands.factors.a.size());
  const std::vector<float> a = floats_of(unit.operand, operands.factors.a);
  Factors others =
      draw_factors(input.random, unit.operand, columns * terms, exponents_of(unit.operand));
  const std::vector<float> b = floats_of(unit.operand, others.b);
  std::vector<float> c(static_cast<std::size_t>(columns),
                       softfloat::to_float(unit.output, operands.c));
  std::vector<float> out(static_cast<std::size_t>(columns));
  const Result<bool> done = multiply_on_unit({.unit = &unit,
                                              .rows = 1,
                                              .terms = terms,
                                              .columns = columns,
                                              .a = a.data(),
                                              .a_stride = terms,
                                              .b = b.data(),
                                              .b_stride = terms,
                                              .b_transposed = true,
                                              .c = c.data(),
                                              .c_stride = columns},
                                             out.data(), columns);
  if (!done) return done.error().message;
  for (std::size_t j = 0; j < out.size(); ++j) {
    const auto begin = others.b.begin() + static_cast<std::ptrdiff_t>(j) * terms;
    operands.factors.b.assign(begin, begin + terms);
    const Bits d = operands.result();
    if (operands.value(d) == static_cast<double>(out[j])) continue;
    return fmt::format("{}: column {} is {:a} by the engine, {} by the reference",
                       case_text(operands), j, out[j], code_text(unit.output, d));
  }
  return std::nullopt;
}

constexpr auto table = std::to_array<Property>({
    {"blocks-have-no-order", "terms of one fused block may change places without changing a bit",
     "MMA-Sim v2, arXiv:2511.10909 (2026-04), algorithms 6 to 11", blocks_have_no_order},
    {"signs-are-symmetric",
     "with a and c negated, d is negated, on every unit but those that round down (CDNA3)",
     "MMA-Sim v2, arXiv:2511.10909 (2026-04), table 5", signs_are_symmetric},
    {"powers-of-two-scale",
     "with a and c times 2^k, d is times 2^k, away from zero exponents, subnormals and overflow",
     "alignment is relative to the largest exponent", powers_of_two_scale},
    {"zeros-change-nothing", "terms that are zero, behind the others, change no bit",
     "kernels fill up K with zeros", zeros_change_nothing},
    {"wide-alignment-is-exact",
     "with 60 bits kept, a fused block is the exact sum, rounded once, as MPFR gives it",
     "MMA-Sim v2, arXiv:2511.10909 (2026-04), algorithm 7; MPFR", wide_alignment_is_exact},
    {"one-more-bit-is-seen",
     "a block loses a term of half its last kept bit, and with one bit more (F + 1) keeps it",
     "MMA-Sim v2, arXiv:2511.10909 (2026-04), algorithm 7", one_more_bit_is_seen},
    {"unit-engine-is-reference", "vector code of a matrix unit gives the bits of the reference",
     "docs/correctness.md", unit_engine_is_reference},
});

}  // namespace

std::span<const Property> unit_properties() { return table; }

}  // namespace kvsim::fuzz
