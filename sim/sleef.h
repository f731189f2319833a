// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

namespace kvsim {

/// tanh x as SLEEF's vector function of 1 ulp computes it where the CPU has fused multiply-adds
/// (shibatch/sleef 3.x, src/libm/sleefsimdsp.c, xtanhf): (e − 1/e) ÷ (e + 1/e) with e = exp |x| as
/// an unevaluated sum of two floats; ±1 beyond 8.664339742. NaN gives NaN. Equal to
/// Sleef_tanhf8_u10 of PyTorch 2.11 for each of 99,328,752 arguments tried between 0 and 10.
[[nodiscard]] float sleef_tanh_u10(float x);

/// log x likewise (xlogf_u1): e ln 2 + 2 artanh((m − 1) ÷ (m + 1)) for x = m 2^e with m in
/// [0.75, 1.5), as unevaluated sums of two floats. −infinity for zeros, NaN below. Equal to
/// Sleef_logf8_u10avx2 and Sleef_logf16_u10avx512f of PyTorch 2.11 for each of 67,108,864 arguments
/// tried between 1 and 2^24, what log-softmax takes it of.
[[nodiscard]] float sleef_log_u10(float x);

}  // namespace kvsim
