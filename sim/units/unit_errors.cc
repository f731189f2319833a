// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/unit_errors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "sim/error_bounds.h"

namespace kvsim {

std::optional<UnitErrors> unit_errors(const MatrixUnit& unit) {
  const RoundingUnits units(unit.output);
  UnitErrors errors;
  errors.fan_in = static_cast<std::size_t>(unit.fan_in);
  switch (unit.operation) {
    case UnitOperation::fma:
      errors.rounds_every_term = true;
      break;
    case UnitOperation::e_fdpa:
      break;
    case UnitOperation::t_fdpa:
      errors.is_truncating = true;
      errors.cut = std::ldexp(1.0, -unit.fraction_bits);
      // A subnormal addend has the exponent of the smallest normal number.
      errors.floor = std::max(std::ldexp(1.0, unit.zero_exponent), units.smallest_normal);
      break;
    case UnitOperation::tr_fdpa:
    case UnitOperation::gtr_fdpa:
      errors.is_truncating = true;
      errors.addend_rounds_down = true;
      errors.cut = std::ldexp(1.0, -unit.fraction_bits);
      errors.cuts_beside_products = unit.operation == UnitOperation::gtr_fdpa ? 3 : 1;
      errors.sum_cut = std::ldexp(1.0, -unit.final_bits - 1);
      errors.final_cut = unit.final_rounding_down ? std::ldexp(1.0, -unit.final_bits) : 0;
      errors.floor = units.smallest_normal;
      break;
    case UnitOperation::ftz_add_mul:
    case UnitOperation::st_fdpa:
    case UnitOperation::gst_fdpa:
      return std::nullopt;
  }
  errors.addend_ulps = 0.5 / units.unit_roundoff;
  errors.conversion = unit.conversion == OutputConversion::rz_e8m13  ? 0x1p-13
                      : unit.conversion == OutputConversion::rz_fp32 ? 2 * units.unit_roundoff
                                                                     : units.unit_roundoff;
  errors.quantum = 2 * units.half_quantum;
  return errors;
}

double power_of_exponent(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7ff0000000000000U);
}

}  // namespace kvsim
