// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/decoder.h"
#include "sim/exp.h"
#include "sim/ulp.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// Mean square deviation of the finite numbers from their mean.
double spread(std::span<const double> numbers) {
  double count = 0;
  double mean = 0;
  double squares = 0;  // about the mean so far (Welford)
  for (const double x : numbers) {
    if (!std::isfinite(x)) continue;
    ++count;
    const double change = x - mean;
    mean += change / count;
    squares += change * (x - mean);
  }
  return count == 0 ? 0 : squares / count;
}

}  // namespace

Result<std::vector<double>> predicted_drift(const RoundingOptions& options) {
  const bool is_wide =
      options.storage.precision > softfloat::binary32.precision ||
      (options.dispatch != nullptr && options.dispatch->arithmetic == DispatchArithmetic::binary64);
  if (is_wide) {
    return Error{ErrorKind::unavailable, "nothing to predict of formats wider than binary32"};
  }
  DecoderOptions decoder;
  decoder.shape = options.shape;
  decoder.storage = options.storage;
  decoder.formats = options.formats;
  decoder.on = options.dispatch;
  decoder.off = options.dispatch;
  decoder.prefix = options.prefix;
  decoder.layers = options.layers;
  decoder.seed = options.seed;
  decoder.engine = options.engine;
  decoder.attention.engine = options.engine;
  const Result<DecoderReport> report = run_decoder(decoder);
  if (!report) return report.error();
  std::vector<double> errors;
  errors.reserve(report->layers.size());
  for (const LayerDrift& layer : report->layers) {
    const double on = layer.on_total.relative_l2;
    const double off = layer.off_total.relative_l2;
    errors.push_back(std::sqrt((on * on + off * off) / 2));
  }
  return errors;
}

LogitVariance::LogitVariance(std::span<const double> logits, const LogitErrors& errors)
    : format_(errors.format),
      from_state_(errors.relative_error * errors.relative_error * spread(logits)) {}

double LogitVariance::operator()(double logit) const {
  const double unit = std::ldexp(1.0, ulp_exponent(format_, DoubleDouble(logit)));
  return from_state_ + unit * unit / 12;
}

double predicted_square(std::span<const double> logits, const LogitErrors& errors) {
  const LogitVariance variance(logits, errors);
  double sum = 0;
  double count = 0;
  for (const double x : logits) {
    if (!std::isfinite(x)) continue;
    sum += variance(x);
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

Result<double> predicted_kl(std::span<const double> logits, const LogitErrors& errors) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double x : logits) {
    if (std::isnan(x)) return Error{ErrorKind::usage, "a logit that is NaN; accepted: numbers"};
    largest = std::max(largest, x);
  }
  if (!std::isfinite(largest)) {
    return Error{ErrorKind::usage, "no finite largest logit; accepted: one"};
  }
  const LogitVariance variance(logits, errors);
  // e^(x − largest); what is smaller than e^−700 weighs nothing.
  const auto weight = [&](double x) {
    return x - largest < -700 ? 0 : exp_reference(DoubleDouble(x - largest)).high;
  };
  double sum = 0;
  for (const double x : logits) sum += weight(x);
  double result = 0;
  for (const double x : logits) {
    const double e = weight(x);
    if (e == 0) continue;
    result += (e / sum) * ((sum - e) / sum) * variance(x);
  }
  return result / 2;
}

}  // namespace kvsim
