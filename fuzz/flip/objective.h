// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/score.h"
#include "fuzz/flip/target.h"

/// What a search for each target maximises, as a table.
namespace kvsim::fuzz {

/// What a case has of what a target looks for.
struct Claim {
  /// In the objective's unit; NaN: nothing of it.
  double value = std::numeric_limits<double>::quiet_NaN();
  std::size_t path = path_on;  ///< the path that it is about, where it is about one

  [[nodiscard]] bool holds() const { return value == value; }
};

/// One target.
struct Objective {
  Target target = Target::flip;
  std::string_view maximises;  ///< what `value` is
  std::string_view unit;       ///< of `value`
  std::string_view confirmed;  ///< what makes a find count
  bool seeks_ties = true;      ///< a computed difference near 0 serves it
  double largest_value = 0;    ///< more than that is a defect of kvsim
  /// What the search makes of a case …
  Claim (*claim)(const FlipCase&, const FlipScore&) = nullptr;
  /// … how near it is, for cases of which the claim does not hold, too …
  double (*fitness)(const FlipCase&, const FlipScore&) = nullptr;
  /// … and what is left of the claim once MPFR and the reference arithmetic have been asked.
  Claim (*confirmed_claim)(const FlipCase&, const FlipScore&, const Confirmation&) = nullptr;
  /// For people, with names in braces: on, off (the paths' names), path (the claim's), choice,
  /// value, margin, apart, runs.
  std::string_view found;
  std::string_view absent;  ///< of one case
  std::string_view none;    ///< of a search
};

[[nodiscard]] const Objective& objective(Target target);

/// A fitness that every other one is above.
inline constexpr double no_fitness = -1e9;

/// KL of the distributions that the two paths give the two tokens, on ‖ off, in nats, within the
/// floor of run/divergence.h; NaN where a number is not finite.
[[nodiscard]] double two_token_kl(const FlipScore& score);

}  // namespace kvsim::fuzz
