// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// The double approximations behind sim/elementary.h, each with the bound of its relative error on
/// arguments that are floats. The bounds are what the decision about the rounding relies on;
/// tests/sim/elementary_test.cc measures the errors against MPFR. Multiplications and additions
/// only, never fused: a library call for each fma would cost more than it saves.
namespace kvsim::elementary {

/// 2^t for −152 ≤ t ≤ 130; any double t. Bound for an exact t.
[[nodiscard]] double exp2_double(double t);
inline constexpr double exp2_error = 0x1p-44;
/// e^x for −105 ≤ x ≤ 90.
[[nodiscard]] double exp_double(double x);
inline constexpr double exp_error = 0x1p-43;
/// ln x for a finite x > 0.
[[nodiscard]] double log_double(double x);
/// log2 x for a finite x > 0.
[[nodiscard]] double log2_double(double x);
inline constexpr double log_error = 0x1p-48;
/// tanh x for any finite x.
[[nodiscard]] double tanh_double(double x);
inline constexpr double tanh_error = 0x1p-42;
/// erf x for any finite x; exactly ±1 from |x| = 4 on, which the float nearest to erf x is too.
[[nodiscard]] double erf_double(double x);
inline constexpr double erf_error = 0x1p-48;
/// sin x and cos x for |x| ≤ largest_reduced_angle.
[[nodiscard]] double sin_double(double x);
[[nodiscard]] double cos_double(double x);
inline constexpr double sin_error = 0x1p-48;
inline constexpr double largest_reduced_angle = 0x1p22;

}  // namespace kvsim::elementary
