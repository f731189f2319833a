// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "softfloat/format.h"
#include "softfloat/result.h"

/// How far two vectors are apart that would be one in exact arithmetic.
namespace kvsim::metrics {

/// What is said of a pair of vectors a and b; a is the reference.
struct Drift {
  double norm = 0;                        ///< ‖a‖
  double l2 = 0;                          ///< ‖a − b‖
  std::optional<double> relative;         ///< ‖a − b‖ ÷ ‖a‖; nothing where a is 0
  std::optional<double> cosine_distance;  ///< 1 − cos(a, b) without cancellation; likewise
  /// Of |aᵢ − bᵢ| in units in the last place, in the format, of the larger of the two; 0 of equal
  /// elements.
  double median_ulps = 0;
  double largest_ulps = 0;
  std::int64_t differing = 0;  ///< elements
};

/// Errors (usage): lists that are empty or of unequal length, a number that is not finite.
[[nodiscard]] Result<Drift> drift(const softfloat::Format& format, std::span<const double> a,
                                  std::span<const double> b);

/// An element is massive where its magnitude is above so many times the median magnitude of its
/// vector. Sun et al., "Massive activations in large language models", arXiv 2402.17762, call
/// elements so that are above 100 and 1,000 times the median; the lower factor, without the
/// absolute one, leaves out more.
inline constexpr double massive_factor = 100;

/// A vector pair without the massive elements of `a`.
struct WithoutMassive {
  std::vector<double> a;
  std::vector<double> b;
  std::int64_t massive = 0;
};
/// Lists of equal length.
[[nodiscard]] WithoutMassive without_massive(std::span<const double> a, std::span<const double> b,
                                             double factor = massive_factor);

}  // namespace kvsim::metrics
