// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/error_bounds.h"

#include <algorithm>
#include <cmath>

#include "sim/double_double.h"
#include "sim/exp.h"
#include "softfloat/host.h"

namespace kvsim {

RoundingUnits::RoundingUnits(const softfloat::Format& format)
    : unit_roundoff(std::ldexp(1.0, -format.precision)),
      half_quantum(
          std::max(0x1p-1074, std::ldexp(1.0, format.emin() - format.trailing_bits() - 1))),
      largest_finite(softfloat::to_double(format, format.max_finite())),
      smallest_normal(std::ldexp(1.0, format.emin())),
      saturates(!format.has_nan()) {}

double expm1_above(double x) {
  if (!(x < 700.0)) return no_bound;
  if (x <= 0x1p-10) return outward(x + x * x);
  return outward((exp_reference(DoubleDouble(x)) - 1.0).high);
}

double rounding_error(const RoundingUnits& units, double rounded) {
  if (!std::isfinite(rounded)) return no_bound;
  if (units.saturates && std::abs(rounded) >= units.largest_finite) return no_bound;
  return std::max(units.unit_roundoff * std::abs(rounded), units.half_quantum);
}

double rounding_error_before(const RoundingUnits& units, double magnitude) {
  if (!(magnitude < units.largest_finite)) return no_bound;
  return std::max(outward(units.unit_roundoff * magnitude), units.half_quantum);
}

SumBound::SumBound(const RoundingUnits& units, const Order& order, std::int64_t terms)
    : units_(units),
      is_exact_(order.items.size() == 1 && order.items[0].kind == OrderKind::exact),
      terms_(static_cast<double>(terms)) {
  const double h_u = static_cast<double>(height(order, terms)) * units.unit_roundoff;
  const double gamma = h_u < 1 ? outward(h_u / (1 - h_u)) : no_bound;
  relative_ = rounds_to_accumulator_only(order)
                  ? std::min(gamma, std::max(0.0, terms_ - 1) * units.unit_roundoff)
                  : no_bound;
}

double SumBound::operator()(double absolute_sum) const {
  if (terms_ == 0) return 0;
  if (is_exact_) return rounding_error_before(units_, absolute_sum);
  // Each product: relative error u, or half a quantum where it is subnormal; then the additions act
  // on the rounded products. Sums of floating-point numbers that are subnormal are exact, a fused
  // step may round there: one more half quantum for each term.
  const double u = units_.unit_roundoff;
  const double quanta = 2 * terms_ * units_.half_quantum;
  const double rounded_products = outward(absolute_sum * (1 + u) + quanta);
  if (!(outward(rounded_products * (1 + relative_)) < units_.largest_finite)) return no_bound;
  return outward(relative_ * rounded_products + u * absolute_sum + quanta * (1 + relative_));
}

}  // namespace kvsim
