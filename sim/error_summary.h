// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention_row.h"
#include "softfloat/format.h"

namespace kvsim {

/// Differences between computed numbers and the exact ones, over all elements of one stage.
/// Bounds are infinite where a number overflows or could: the report then says "overflow".
struct ErrorSummary {
  std::int64_t elements = 0;
  std::int64_t not_finite = 0;  ///< computed elements that are infinite or NaN; in no figure below
  double mean_relative_error = 0;  ///< over elements whose exact value is not 0
  double relative_l2 = 0;          ///< ‖computed − exact‖ ÷ ‖exact‖
  double max_ulp = 0;  ///< largest error in units in the last place of the output format
  double max_absolute = 0;
  double running_bound_l2 = 0;  ///< ‖running bounds‖ ÷ ‖exact‖: from the intermediate results
  double a_priori_bound_l2 =
      0;  ///< ‖a-priori bounds‖ ÷ ‖exact‖: from the inputs alone; attention: 0
  double max_of_running_bound = 0;  ///< largest error ÷ its running bound: at most 1, or a defect
};

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
