// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/binary32_kl.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "experiments/statistics/distributions.h"
#include "run/divergence.h"

namespace kvsim::metrics {
namespace {

float exponential(float x) { return static_cast<float>(statistics::exponential(x)); }

std::vector<float> log_softmax(std::span<const double> logits) {
  std::vector<float> values;
  values.reserve(logits.size());
  for (const double logit : logits) values.push_back(static_cast<float>(logit));
  const float largest = *std::ranges::max_element(values);
  float sum = 0;
  for (const float value : values) sum += exponential(value - largest);
  const auto log_sum = static_cast<float>(statistics::logarithm(sum));
  for (float& value : values) value = value - largest - log_sum;
  return values;
}

}  // namespace

Result<double> kl_in_binary32(std::span<const double> p_logits, std::span<const double> q_logits) {
  if (const auto valid = divergence(p_logits, q_logits); !valid) return valid.error();
  const std::vector<float> p = log_softmax(p_logits);
  const std::vector<float> q = log_softmax(q_logits);
  float sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::isfinite(p[i])) sum += exponential(p[i]) * (p[i] - q[i]);
  }
  return static_cast<double>(sum);
}

}  // namespace kvsim::metrics
