// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/decoder_shape.h"
#include "sim/dispatch.h"
#include "sim/engine/columns.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// How far rounding moves a model: from its shape, its kernels and its formats, without its weights
/// and without running it. What is much larger is no rounding.
namespace kvsim {

/// What computes, and on which seeded numbers.
struct RoundingOptions {
  DecoderShape shape;
  const Dispatch* dispatch = nullptr;  ///< required
  softfloat::Format storage;           ///< of hidden states
  DispatchFormats formats = {};        ///< as DecoderOptions::formats
  std::int64_t prefix = 16;            ///< tokens before the last one
  std::int64_t layers = 0;             ///< the first so many; 0: all
  std::uint64_t seed = 1;
  EngineOptions engine = {};  ///< changes no bit
};

/// The relative error of the last token's hidden state after each layer, ‖computed − exact‖ ÷
/// ‖exact‖, of run_decoder() against its binary64 decoder: root mean square of the token on its own
/// behind a cache and of all tokens at once. Errors (unavailable): formats wider than binary32,
/// which leave nothing to measure; else those of run_decoder().
[[nodiscard]] Result<std::vector<double>> predicted_drift(const RoundingOptions& options);

/// What becomes of a hidden state's error.
struct LogitErrors {
  double relative_error = 0;  ///< of the last hidden state
  softfloat::Format format;   ///< that logits are rounded to
};

/// The variance of the error of one of these logits:
///
///   v = (relative_error · s)² + ulp² ÷ 12.
///
/// s is the standard deviation of the finite logits: an error in no particular direction moves a
/// logit by its share of the hidden state, as the state itself spreads the logits. The rest is the
/// rounding of the logit, even over one unit in its last place.
class LogitVariance {
 public:
  LogitVariance(std::span<const double> logits, const LogitErrors& errors);
  /// v of a finite logit.
  [[nodiscard]] double operator()(double logit) const;

 private:
  softfloat::Format format_;
  double from_state_;
};

/// Their mean v, over the finite ones. None: 0.
[[nodiscard]] double predicted_square(std::span<const double> logits, const LogitErrors& errors);

/// The mean KL, in nats, between the distribution of these logits and that of the same ones with
/// random errors δ:
///
///   KL ≈ ½ Var_p(δ),  E Var_p(δ) = Σ p (1 − p) v  for independent δ with mean 0 and variances v.
///
/// with the v of LogitVariance. Errors: those of softmax: no logits, a NaN, +infinity, −infinity
/// everywhere.
[[nodiscard]] Result<double> predicted_kl(std::span<const double> logits,
                                          const LogitErrors& errors);

}  // namespace kvsim
