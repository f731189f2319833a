// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <string_view>

#include "gpu/probe/findings.h"
#include "softfloat/rounding.h"

namespace kvsim::gpu {
namespace {

constexpr std::string_view ties_to_even = "to nearest, ties to even";

bool truncates_products(const MatrixUnit& unit) {
  return unit.operation != UnitOperation::fma && unit.operation != UnitOperation::ftz_add_mul &&
         unit.operation != UnitOperation::e_fdpa;
}

bool rounds_down(const MatrixUnit& unit) {
  return unit.operation == UnitOperation::tr_fdpa || unit.operation == UnitOperation::gtr_fdpa;
}

bool rounds_toward_zero(const MatrixUnit& unit) {
  return unit.conversion == OutputConversion::rz_fp32 ||
         unit.conversion == OutputConversion::rz_e8m13;
}

int result_precision(OutputConversion conversion) {
  switch (conversion) {
    case OutputConversion::rz_e8m13:
      return 14;
    case OutputConversion::rne_fp16:
      return 11;
    case OutputConversion::rne_fp64:
      return 53;
    case OutputConversion::rz_fp32:
    case OutputConversion::rne_fp32:
      break;
  }
  return 24;
}

void declare_fractions(const MatrixUnit& unit, Properties& out) {
  if (unit.operation == UnitOperation::e_fdpa) {
    out.push_back({property::fraction_bits, {.kind = Seen::Kind::no_limit}});
    out.push_back({property::addend_bits, {.kind = Seen::Kind::no_limit}});
    out.push_back({property::cut, seen_word("nothing")});
  }
  if (!truncates_products(unit)) return;
  out.push_back({property::fraction_bits, seen_number(unit.fraction_bits)});
  const int late_bits = unit.final_bits + (unit.final_rounding_down ? 0 : 1);
  if (unit.addend == Addend::first) {
    out.push_back(
        {property::addend_bits, seen_number(rounds_down(unit) ? late_bits : unit.fraction_bits)});
  }
  if (unit.addend == Addend::first && !rounds_toward_zero(unit)) {
    out.push_back({property::cut, seen_word(rounds_down(unit) ? "down" : "toward zero")});
  }
  // Where sums are rounded down, a zero c has the smallest exponent of its format.
  out.push_back({property::zero_exponent,
                 seen_number(rounds_down(unit) ? unit.output.emin() : unit.zero_exponent)});
  // Small e4m3 numbers that become binary16 are normal there.
  const bool converted = unit.input.emin() < unit.operand.emin();
  out.push_back({property::subnormal_alignment,
                 seen_word(converted ? "their own" : "that of the smallest normal number")});
}

void declare_subnormals(const MatrixUnit& unit, Properties& out) {
  using softfloat::Subnormals;
  const Subnormals mode = unit.mode.subnormals;
  const bool flushes = unit.operation == UnitOperation::ftz_add_mul;
  const bool operands =
      flushes || mode == Subnormals::flush_both || mode == Subnormals::flush_inputs;
  const bool results =
      flushes || mode == Subnormals::flush_both || mode == Subnormals::flush_results;
  out.push_back({property::subnormal_operands, seen_word(operands ? "flushed" : "kept")});
  out.push_back({property::subnormal_results, seen_word(results ? "flushed" : "kept")});
}

}  // namespace

Properties declared_properties(const MatrixUnit& unit) {
  Properties out;
  const int products = unit.fan_in * unit.blocks;
  out.push_back({property::structure, seen_word(to_string(structure_of(unit), products))});
  out.push_back({property::precision, seen_number(result_precision(unit.conversion))});
  out.push_back(
      {property::rounding,
       seen_word(rounds_toward_zero(unit) ? std::string_view("toward zero") : ties_to_even)});
  if (unit.addend == Addend::last) {
    out.push_back({property::last_rounding, seen_word(ties_to_even)});
  }
  declare_fractions(unit, out);
  out.push_back({property::product, seen_word("exact")});
  if (unit.input.width() < unit.operand.width()) {
    const bool drops = unit.operand_rounding == OperandRounding::truncate;
    out.push_back({property::operand, seen_word(drops ? "dropped" : "rounded, ties away")});
  }
  declare_subnormals(unit, out);
  out.push_back({property::nan, seen_word(unit.nan_rule == NanRule::propagate
                                              ? std::string("that of the operand")
                                              : fmt::format("0x{:0{}x}", unit.nan_code,
                                                            unit.output.width() / 4))});
  out.push_back({property::overflow, seen_word("infinity")});
  out.push_back({property::cancelled, seen_word("+0")});
  const bool positive = unit.addend == Addend::last || unit.operation == UnitOperation::e_fdpa ||
                        unit.operation == UnitOperation::ftz_add_mul;
  out.push_back({property::negative_zeros, seen_word(positive ? "+0" : "-0")});
  return out;
}

}  // namespace kvsim::gpu
