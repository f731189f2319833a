// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/ranges.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/units/unit_errors.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

double to_storage(const softfloat::Format& storage, double x, const softfloat::Mode& mode = {}) {
  return softfloat::to_double(
      storage,
      softfloat::convert(storage, softfloat::binary64, softfloat::from_double(x), mode).bits);
}

}  // namespace

ValueRanges default_ranges() {
  ValueRanges ranges;
  for (std::size_t t = 0; t < case_tensors; ++t) {
    ranges.tensors[t] = default_range(static_cast<CaseTensor>(t));
  }
  ranges.source = default_range_source;
  return ranges;
}

ValueFitter::ValueFitter(const softfloat::Format& storage, ValueRanges ranges)
    : storage_(storage),
      ranges_(std::move(ranges)),
      smallest_normal_(std::ldexp(1.0, storage.emin())),
      smallest_(ranges_.subnormals ? std::ldexp(smallest_normal_, 1 - storage.precision)
                                   : smallest_normal_) {
  const double finite = softfloat::to_double(storage, storage.max_finite());
  for (std::size_t t = 0; t < case_tensors; ++t) {
    const double largest = std::min(ranges_.tensors[t].largest, finite);
    largest_[t] = to_storage(storage, largest, {.rounding = softfloat::Rounding::toward_zero});
  }
}

float ValueFitter::fit(CaseTensor tensor, double x) const {
  if (std::isnan(x)) return 0;
  const double most = largest(tensor);
  const double clamped = std::clamp(x, -most, most);
  // Adding a number whose ulp is that of the result rounds to it, ties to even.
  const double power = std::max(power_of_exponent(std::abs(clamped)), smallest_normal_);
  const double large =
      1.5 * power * static_cast<double>(std::int64_t{1} << (53 - storage_.precision));
  const double value = (clamped + large) - large;
  if (std::abs(value) < smallest_) return 0;
  return static_cast<float>(value);
}

FlipCase ValueFitter::random_case(const CaseShape& shape, Random& random) const {
  FlipCase result = empty_case(shape);
  for (std::size_t t = 0; t < case_tensors; ++t) {
    const auto tensor = static_cast<CaseTensor>(t);
    const double spread = ranges_[tensor].root_mean_square;
    random.gaussians(result.tensors[t]);
    for (float& x : result.tensors[t]) x = fit(tensor, spread * static_cast<double>(x));
  }
  return result;
}

}  // namespace kvsim::fuzz
