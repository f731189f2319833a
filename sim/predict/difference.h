// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "softfloat/format.h"

namespace kvsim {

/// Elements whose distance lies in one class of units in the last place.
struct UlpBin {
  std::int64_t from = 0;  ///< smallest distance of the class
  std::int64_t to = 0;    ///< largest distance of the class
  std::int64_t count = 0;

  friend bool operator==(const UlpBin&, const UlpBin&) = default;
};

/// How two computed vectors differ. The second one is the reference of what is relative. Elements
/// that are infinite or NaN on either side count in `differing` and `not_finite` alone.
struct VectorDifference {
  std::int64_t elements = 0;
  std::int64_t differing = 0;   ///< elements with other bits; NaNs are all alike
  std::int64_t not_finite = 0;  ///< elements of which one side is infinite or NaN
  double l2 = 0;                ///< ‖a − b‖
  double reference_l2 = 0;      ///< ‖b‖
  double relative_l2 = 0;       ///< ‖a − b‖ ÷ ‖b‖; 0 where both are 0
  double cosine = 1;            ///< a·b ÷ (‖a‖ ‖b‖); 1 where a vector is 0
  double max_absolute = 0;
  std::int64_t max_ulp =
      0;  ///< largest distance, in steps from one number of the format to the next
  /// Distances 0, 1, 2, 3–4, 5–8, … up to the class of max_ulp. +0 and −0 are at distance 0.
  std::vector<UlpBin> histogram;

  /// The share of elements that differ, 0 … 1.
  [[nodiscard]] double share() const {
    return elements == 0 ? 0 : static_cast<double>(differing) / static_cast<double>(elements);
  }
};

/// The difference of two vectors of equal length whose elements are numbers of `format`.
[[nodiscard]] VectorDifference compare_vectors(const softfloat::Format& format,
                                               std::span<const float> a, std::span<const float> b);

/// Adds up differences of parts: counts, the root of the summed squares, the largest of the
/// largest. The cosine and what is relative are those of the whole.
class DifferenceSums {
 public:
  /// Compares two vectors of numbers of `format` and adds them to the whole.
  void add(const softfloat::Format& format, std::span<const float> a, std::span<const float> b);
  [[nodiscard]] VectorDifference total() const;

 private:
  void add_distance(std::int64_t distance);

  VectorDifference counts_;
  double difference_squared_ = 0;
  double a_squared_ = 0;
  double b_squared_ = 0;
  double product_ = 0;
};

}  // namespace kvsim
