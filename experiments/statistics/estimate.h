// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// A number with its interval.
namespace kvsim::statistics {

/// What was estimated, and the interval that holds the true value with the confidence asked for.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;

  friend bool operator==(const Estimate&, const Estimate&) = default;
};

/// The confidence of an interval where the caller names none.
inline constexpr double usual_confidence = 0.95;

}  // namespace kvsim::statistics
