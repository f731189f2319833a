// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "experiments/setup.h"
#include "softfloat/evidence.h"
#include "softfloat/result.h"

/// What predict says of the rounding of an arm, and how much more a control allows.
namespace kvsim::experiments {

/// By how much a figure may miss its prediction before it is no rounding any more.
struct AllowanceRow {
  std::string_view name;
  double factor = 1;  ///< of an error; of KL, which is quadratic in it, the square
  std::string_view reason;
  softfloat::Evidence evidence;
};

/// All of them, in the order of the functions below.
[[nodiscard]] std::span<const AllowanceRow> allowance_rows();
/// A model's own weights instead of seeded ones, on means over steps: two arms apart.
[[nodiscard]] const AllowanceRow& weights_allowance();
/// The same of one arm's error.
[[nodiscard]] const AllowanceRow& arm_allowance();
/// The same where one step decides.
[[nodiscard]] const AllowanceRow& step_allowance();
/// Noise that is put into a cache instead of what two paths differ by.
[[nodiscard]] const AllowanceRow& noise_allowance();

/// By layer, predicted_drift() of the arm: its kernels and formats, without its plant and its
/// weights, on one seed. Each is computed once in a process. Errors (unavailable): the engine does
/// not say what it computes, or computes nothing that rounds to 32 bits or fewer; those of
/// predicted_drift().
[[nodiscard]] Result<std::vector<double>> predicted_drift_of(const StudyArm& arm);

}  // namespace kvsim::experiments
