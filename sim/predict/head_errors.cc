// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/head_errors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/inputs.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

double mean(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double correlation(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean(x);
  const double mean_y = mean(y);
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx == 0 || yy == 0) return 0;
  return xy / (std::sqrt(xx) * std::sqrt(yy));
}

double squared(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

}  // namespace

double mean_correlation(const HeadErrors& errors) {
  double sum = 0;
  std::int64_t pairs = 0;
  for (std::int64_t first = 0; first < errors.heads; first += errors.group) {
    for (std::int64_t a = first; a < first + errors.group; ++a) {
      for (std::int64_t b = a + 1; b < first + errors.group; ++b) {
        sum += correlation(errors.head(a), errors.head(b));
        ++pairs;
      }
    }
  }
  return pairs == 0 ? 0 : sum / static_cast<double>(pairs);
}

double sum_over_heads_gain(const HeadErrors& errors) {
  double of_sums = 0;
  for (std::int64_t first = 0; first < errors.heads; first += errors.group) {
    for (std::int64_t i = 0; i < errors.elements; ++i) {
      double sum = 0;
      for (std::int64_t h = first; h < first + errors.group; ++h) sum += errors.head(h)[index(i)];
      of_sums += sum * sum;
    }
  }
  const double of_heads = squared(errors.values);
  return of_heads == 0 ? 1 : std::sqrt(of_sums / of_heads);
}

double amplification(std::int64_t group, double mean_correlation) {
  return std::sqrt(std::max(0.0, 1 + static_cast<double>(group - 1) * mean_correlation));
}

double projection_gain(const HeadErrors& errors, std::int64_t head_dim, std::int64_t outputs,
                       std::uint64_t seed) {
  const double before = squared(errors.values);
  if (before == 0) return 0;
  const std::int64_t inputs = errors.heads * head_dim;
  const std::int64_t positions = errors.elements / head_dim;
  const double deviation = 1 / std::sqrt(static_cast<double>(inputs));
  constexpr std::uint64_t stream = 0x6f70726f6a;  // "oproj"
  double after = 0;
  std::vector<double> weights(index(inputs));
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t i = 0; i < inputs; ++i) {
      weights[index(i)] =
          deviation * normal(seed, stream, static_cast<std::uint64_t>(o * inputs + i));
    }
    for (std::int64_t p = 0; p < positions; ++p) {
      double sum = 0;
      for (std::int64_t h = 0; h < errors.heads; ++h) {
        const std::span<const double> row =
            errors.head(h).subspan(index(p * head_dim), index(head_dim));
        for (std::int64_t d = 0; d < head_dim; ++d)
          sum += weights[index(h * head_dim + d)] * row[index(d)];
      }
      after += sum * sum;
    }
  }
  return std::sqrt(after / before);
}

}  // namespace kvsim
