// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/compare.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "softfloat/host.h"

namespace kvsim {
namespace {

// ⌊log2 |value|⌋ of a nonzero double-double.
int exponent_of(DoubleDouble value) {
  int exponent = 0;
  const double fraction = std::frexp(value.high, &exponent);  // |fraction| in [½, 1)
  // At a power of two a low part of the other sign puts the value into the binade below.
  const bool below = std::fabs(fraction) == 0.5 && value.low != 0 &&
                     std::signbit(value.low) != std::signbit(value.high);
  return exponent - (below ? 2 : 1);
}

// √(Σ x²) kept as a scaled sum of squares: every x is multiplied by 2^−exponent first, so that
// neither overflow nor underflow spoils the sum.
class SumOfSquares {
 public:
  explicit SumOfSquares(int exponent) : exponent_(exponent) {}
  void add(DoubleDouble x) {
    const DoubleDouble scaled = scale_by_power_of_two(x, -exponent_);
    sum_ = sum_ + scaled * scaled;
  }
  DoubleDouble sum() const { return sum_; }

 private:
  int exponent_;
  DoubleDouble sum_;
};

bool both_finite(double computed, DoubleDouble exact) {
  return std::isfinite(computed) && std::isfinite(exact.high);
}

}  // namespace

int ulp_exponent(const softfloat::Format& format, DoubleDouble value) {
  int exponent = format.emin();
  if (value.high != 0) exponent = std::clamp(exponent_of(value), format.emin(), format.emax());
  return exponent - format.precision + 1;
}

ErrorStatistics compare_with_exact(const softfloat::Format& format,
                                   std::span<const softfloat::Bits> computed,
                                   std::span<const DoubleDouble> exact) {
  ErrorStatistics statistics;
  statistics.count = static_cast<std::int64_t>(computed.size());
  // One scale for both norms, near the largest number: their ratio does not depend on it.
  double largest = 0;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const double value = softfloat::to_double(format, computed[i]);
    if (both_finite(value, exact[i])) {
      largest = std::max({largest, std::fabs(value), std::fabs(exact[i].high)});
    }
  }
  const int scale = largest > 0 ? exponent_of(largest) : 0;
  SumOfSquares errors(scale);
  SumOfSquares references(scale);
  DoubleDouble relative_sum;
  std::int64_t relative_count = 0;
  for (std::size_t i = 0; i < computed.size(); ++i) {
    const double value = softfloat::to_double(format, computed[i]);
    if (!both_finite(value, exact[i])) {
      ++statistics.not_finite;
      continue;
    }
    const DoubleDouble error = abs(-exact[i] + value);
    errors.add(error);
    references.add(exact[i]);
    const int unit = ulp_exponent(format, exact[i]);
    const double ulps = std::ldexp(error.high, -unit);
    if (statistics.maximum_ulp_index < 0 || ulps > statistics.maximum_ulp) {
      statistics.maximum_ulp = ulps;
      statistics.maximum_ulp_index = static_cast<std::int64_t>(i);
    }
    if (exact[i].high == 0) {
      ++statistics.exact_zero;
    } else {
      relative_sum = relative_sum + error / abs(exact[i]);
      ++relative_count;
    }
  }
  if (relative_count > 0) {
    statistics.mean_relative_error = (relative_sum / static_cast<double>(relative_count)).high;
  }
  if (references.sum().high != 0) {
    statistics.relative_l2 = sqrt(errors.sum() / references.sum()).high;
  } else if (errors.sum().high != 0) {
    statistics.relative_l2 = std::numeric_limits<double>::infinity();
  }
  return statistics;
}

std::int64_t count_different(std::span<const softfloat::Bits> a,
                             std::span<const softfloat::Bits> b) {
  std::int64_t different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different += a[i] != b[i] ? 1 : 0;
  return different;
}

}  // namespace kvsim
