// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "sim/compare.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

/// Steps from a to b through the numbers of the format; both finite.
std::int64_t distance_in_steps(const softfloat::Format& format, float a, float b) {
  const auto code = [&](float value) {
    return softfloat::convert(format, softfloat::binary32, softfloat::from_float(value)).bits;
  };
  return static_cast<std::int64_t>(ulp_distance(format, code(a), code(b)).value_or(0));
}

std::size_t bin_of(std::int64_t distance) {
  if (distance <= 1) return static_cast<std::size_t>(distance);
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(distance - 1))) + 1;
}

UlpBin empty_bin(std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  if (i < 2) return {i, i, 0};
  return {(std::int64_t{1} << (i - 2)) + 1, std::int64_t{1} << (i - 1), 0};
}

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

void DifferenceSums::add_distance(std::int64_t distance) {
  const std::size_t bin = bin_of(distance);
  while (counts_.histogram.size() <= bin) {
    counts_.histogram.push_back(empty_bin(counts_.histogram.size()));
  }
  ++counts_.histogram[bin].count;
  counts_.max_ulp = std::max(counts_.max_ulp, distance);
}

void DifferenceSums::add(const softfloat::Format& format, std::span<const float> a,
                         std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++counts_.elements;
    const bool same = same_bits(a[i], b[i]);
    counts_.differing += same ? 0 : 1;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      ++counts_.not_finite;
      continue;
    }
    const double left = a[i];
    const double right = b[i];
    a_squared_ += left * left;
    b_squared_ += right * right;
    product_ += left * right;
    const double distance = std::abs(left - right);
    difference_squared_ += distance * distance;
    counts_.max_absolute = std::max(counts_.max_absolute, distance);
    add_distance(same ? 0 : distance_in_steps(format, a[i], b[i]));
  }
}

VectorDifference DifferenceSums::total() const {
  VectorDifference result = counts_;
  result.l2 = std::sqrt(difference_squared_);
  result.reference_l2 = std::sqrt(b_squared_);
  if (difference_squared_ > 0) result.relative_l2 = std::sqrt(difference_squared_ / b_squared_);
  const double norms = std::sqrt(a_squared_) * std::sqrt(b_squared_);
  // 1 − cosine below the rounding of these sums is rounding: equal vectors are at cosine 1.
  if (norms > 0 && difference_squared_ > 0) result.cosine = std::min(1.0, product_ / norms);
  return result;
}

VectorDifference compare_vectors(const softfloat::Format& format, std::span<const float> a,
                                 std::span<const float> b) {
  DifferenceSums sums;
  sums.add(format, a, b);
  return sums.total();
}

}  // namespace kvsim
