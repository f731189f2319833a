// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/error_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "sim/error_bounds.h"
#include "sim/ulp.h"

namespace kvsim {

void ErrorSums::add(const softfloat::Format& format, const BoundedValues& values,
                    std::span<const DoubleDouble> exact) {
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ++elements_;
    const double running = values.running.empty() ? no_bound : values.running[i];
    const double a_priori = values.a_priori.empty() ? no_bound : values.a_priori[i];
    running_squared_ += running * running;
    a_priori_squared_ += a_priori * a_priori;
    if (!std::isfinite(values.value[i]) || !std::isfinite(exact[i].high)) {
      ++not_finite_;
      // A finite bound would promise a finite error.
      bounds_hold_ = bounds_hold_ && running == no_bound && a_priori == no_bound;
      continue;
    }
    exact_squared_ += exact[i].high * exact[i].high;
    const double error = std::abs((exact[i] - values.value[i]).high);
    error_squared_ += error * error;
    max_absolute_ = std::max(max_absolute_, error);
    if (exact[i].high != 0) {
      relative_error_ += error / std::abs(exact[i].high);
      ++with_relative_error_;
    }
    max_ulp_ = std::max(max_ulp_, std::ldexp(error, -ulp_exponent(format, exact[i])));
    // The reference is good to about 2^−100 and the difference is rounded once.
    const double certain = error * (1 - 0x1p-50) - 0x1p-90 * std::abs(exact[i].high);
    bounds_hold_ = bounds_hold_ && certain <= running && certain <= a_priori;
    if (running > 0) max_of_running_bound_ = std::max(max_of_running_bound_, error / running);
  }
}

void ErrorSums::add(const ErrorSums& other) {
  elements_ += other.elements_;
  not_finite_ += other.not_finite_;
  with_relative_error_ += other.with_relative_error_;
  relative_error_ += other.relative_error_;
  error_squared_ += other.error_squared_;
  exact_squared_ += other.exact_squared_;
  max_ulp_ = std::max(max_ulp_, other.max_ulp_);
  max_absolute_ = std::max(max_absolute_, other.max_absolute_);
  running_squared_ += other.running_squared_;
  a_priori_squared_ += other.a_priori_squared_;
  max_of_running_bound_ = std::max(max_of_running_bound_, other.max_of_running_bound_);
  bounds_hold_ = bounds_hold_ && other.bounds_hold_;
}

ErrorSummary ErrorSums::summary() const {
  const auto relative = [&](double squared) {
    if (squared == 0) return 0.0;
    return std::sqrt(squared / exact_squared_);
  };
  ErrorSummary result;
  result.elements = elements_;
  result.not_finite = not_finite_;
  if (with_relative_error_ > 0) {
    result.mean_relative_error = relative_error_ / static_cast<double>(with_relative_error_);
  }
  result.relative_l2 = relative(error_squared_);
  result.max_ulp = max_ulp_;
  result.max_absolute = max_absolute_;
  result.running_bound_l2 = relative(running_squared_);
  result.a_priori_bound_l2 = relative(a_priori_squared_);
  result.max_of_running_bound = max_of_running_bound_;
  return result;
}

std::int64_t count_different(std::span<const double> a, std::span<const double> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) ++count;
  }
  return count;
}

}  // namespace kvsim
