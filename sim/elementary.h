// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// Elementary functions of binary32, each rounded once to nearest, ties to even: the same bits on
/// every host, because no function of the C library takes part. A double approximation with a
/// stated error decides almost every argument; where a boundary between two floats lies within that
/// error, integers of some hundred bits decide. Subnormal arguments and results are kept. NaN gives
/// the quiet NaN 0x7fc00000. tests/sim/elementary_test.cc compares every function with MPFR.
namespace kvsim {

/// e^x. +infinity from 88.72284 on, +0 below −103.97208.
[[nodiscard]] float exp_f32(float x);
/// 2^x, exact for integers. +infinity from 128 on, +0 for x ≤ −150.
[[nodiscard]] float exp2_f32(float x);
/// Natural logarithm. −infinity for ±0, NaN below zero.
[[nodiscard]] float log_f32(float x);
/// Binary logarithm, exact for powers of two. −infinity for ±0, NaN below zero.
[[nodiscard]] float log2_f32(float x);
/// Hyperbolic tangent; ±0 stays.
[[nodiscard]] float tanh_f32(float x);
/// Error function 2/√π ∫₀ˣ e^(−t²) dt; ±0 stays.
[[nodiscard]] float erf_f32(float x);
/// Sine of x radians, for any finite x; ±0 stays. NaN for an infinite x.
[[nodiscard]] float sin_f32(float x);
/// Cosine of x radians, for any finite x. NaN for an infinite x.
[[nodiscard]] float cos_f32(float x);
/// 1/√x with one rounding. ±infinity for ±0, NaN below zero. (A kernel that divides 1 by a rounded
/// √x rounds twice and needs no function: `1.0F / std::sqrt(x)`.)
[[nodiscard]] float rsqrt_f32(float x);
/// base^exponent for a base > 0, as the frequencies of RoPE need it. A base that is not a positive
/// finite number or an exponent that is not finite gives NaN.
[[nodiscard]] float pow_f32(float base, float exponent);

}  // namespace kvsim
