// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention_row.h"
#include "sim/predict.h"

namespace kvsim {

/// Running sums behind an ErrorSummary. Rows are added in order, so that the figures are a function
/// of the numbers alone.
class ErrorSums {
 public:
  /// Adds the elements of one row. `values.running` and `values.a_priori` may be empty: no bound
  /// then.
  void add(const softfloat::Format& format, const BoundedValues& values,
           std::span<const DoubleDouble> exact);
  /// Adds the sums of another row.
  void add(const ErrorSums& other);

  [[nodiscard]] ErrorSummary summary() const;
  /// False when a finite element lies outside one of its bounds.
  [[nodiscard]] bool bounds_hold() const { return bounds_hold_; }

 private:
  std::int64_t elements_ = 0;
  std::int64_t not_finite_ = 0;
  std::int64_t with_relative_error_ = 0;
  double relative_error_ = 0;
  double error_squared_ = 0;
  double exact_squared_ = 0;
  double max_ulp_ = 0;
  double max_absolute_ = 0;
  double running_squared_ = 0;
  double a_priori_squared_ = 0;
  double max_of_running_bound_ = 0;
  bool bounds_hold_ = true;
};

/// How many elements differ in their bits; NaNs are all alike.
[[nodiscard]] std::int64_t count_different(std::span<const double> a, std::span<const double> b);

}  // namespace kvsim
