// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "sim/predict/confidence.h"
#include "sim/ulp.h"

namespace kvsim {
namespace {

double parsed(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

double two_digits_up(double value) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  const std::string nearest = fmt::format("{:.1e}", value);
  const double rounded = parsed(nearest);
  if (rounded >= value) return rounded;
  // The nearest lies below: one more in the second digit.
  const std::size_t e = nearest.find('e');
  const int digits = (nearest[0] - '0') * 10 + (nearest[2] - '0') + 1;
  return parsed(fmt::format("{}.{}{}", digits / 10, digits % 10, nearest.substr(e)));
}

Tolerance make_tolerance(const ToleranceInput& input) {
  Tolerance result;
  result.relative = two_digits_up(std::ldexp(1.0, 1 - input.format.precision));
  const double step =
      std::ldexp(1.0, ulp_exponent(input.format, DoubleDouble(input.root_mean_square)));
  const double largest = largest_normal_quantile(input.difference, input.elements, 0.95);
  result.absolute = two_digits_up(std::max({largest, step / 2, input.largest}));
  return result;
}

}  // namespace kvsim
