// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/rescale_probe.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <utility>

#include "gpu/reveal/attention/value_sums.h"
#include "sim/elementary.h"
#include "softfloat/format.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

/// The unit in the last place of numbers of the size of x, and x rounded to it.
double ulp_of(const Format& format, double x) {
  const int exponent = std::max(std::ilogb(x), format.emin());
  return std::ldexp(1.0, exponent - format.precision + 1);
}
double rounded(const Format& format, double x) {
  const double ulp = ulp_of(format, x);
  return std::nearbyint(x / ulp) * ulp;
}
double distance_to_integer(double x) { return std::fabs(x - std::nearbyint(x)); }

constexpr double clear_fraction = 0.2;   // of a unit in the last place, asked for
constexpr double seen_fraction = 0.12;   // and taken for one
constexpr float narrow_value = 0x1p10F;  // keeps differences of p above subnormal numbers

}  // namespace

RescaleProbe::Rise RescaleProbe::rise(double log2_rise) const {
  const Format& format = calls_.layer().format;
  const double scale = calls_.layer().scale();
  const double wanted = rounded(format, log2_rise * std::numbers::ln2 / scale);
  Rise found{static_cast<float>(wanted)};
  if (!is_narrow()) return found;
  // A rise that tells p from the rescale factor, and from no rescaling at all.
  for (int step = 0; step < 400; ++step) {
    const double away = (step % 2 == 0 ? 1.0 : -1.0) * (step + 1) / 2;
    const double query = rounded(format, wanted + std::trunc(away) * ulp_of(format, wanted));
    const double p = exp_f32(static_cast<float>(-query * scale));
    const double small = rounded(format, p);
    const double ulp = ulp_of(format, p);
    const double kept = (1 / rounded(format, 1 / p) - small) / ulp;
    if (distance_to_integer(p / ulp) < clear_fraction ||
        distance_to_integer(kept) < clear_fraction) {
      continue;
    }
    return {static_cast<float>(query), static_cast<float>(small), static_cast<float>(ulp)};
  }
  return found;
}

double RescaleProbe::possible_rise(double log2_rise) const {
  return static_cast<double>(rise(log2_rise).query) * calls_.layer().scale() / std::numbers::ln2;
}

AttentionOperands RescaleProbe::operands(std::int64_t raised, const Rise& rise) const {
  const AttentionShape& shape = calls_.shape();
  AttentionOperands operands = zero_operands(shape);
  for (std::size_t i = 0; i < operands.q.size(); i += index(shape.head_dim)) {
    operands.q[i] = rise.query;
  }
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    operands.k[index((head * shape.kv_len + raised) * shape.head_dim)] = 1;
  }
  return operands;
}

float RescaleProbe::at(const std::vector<float>& outputs, std::int64_t column) const {
  return outputs[index(output_of_sum(calls_.layer(), row_, column))];
}

float& RescaleProbe::value(AttentionOperands& operands, std::int64_t key,
                           std::int64_t column) const {
  const AttentionShape& shape = calls_.shape();
  const std::int64_t head = column / shape.head_dim;
  return operands.v[index((head * shape.kv_len + key) * shape.head_dim + column % shape.head_dim)];
}

Result<bool> RescaleProbe::find_overflow(std::int64_t raised, const Rise& rise, std::int64_t first,
                                         std::int64_t last, KnowingKeys& keys) {
  const float large = 1.5F * std::ldexp(1.0F, calls_.layer().format.emax());
  for (std::int64_t begin = first; begin < last; begin += columns()) {
    const std::int64_t end = std::min(begin + columns(), last);
    AttentionOperands data = operands(raised, rise);
    for (std::int64_t key = begin; key < end; ++key) {
      value(data, key, key - begin) = large;
      value(data, key + 1, key - begin) = large;
    }
    const auto outputs = calls_.run(std::move(data));
    if (!outputs) return outputs.error();
    for (std::int64_t key = begin; key < end; ++key) {
      if (std::isfinite(at(*outputs, key - begin))) continue;
      keys[index(key)] = 0;
      keys[index(key + 1)] = 0;
    }
  }
  return true;
}

Result<bool> RescaleProbe::find_fractions(std::int64_t raised, const Rise& rise, std::int64_t first,
                                          std::int64_t last, KnowingKeys& keys) {
  // The last column measures what the raised key alone gives. With one column it has a call.
  const std::int64_t used = std::max<std::int64_t>(1, columns() - 1);
  std::optional<double> one;
  for (std::int64_t begin = first; begin <= last; begin += used) {
    const std::int64_t end = std::min(begin + used, last + 1);
    AttentionOperands data = operands(raised, rise);
    for (std::int64_t key = begin; key < end; ++key) {
      value(data, raised, key - begin) = -rise.small * narrow_value;
      value(data, key, key - begin) = narrow_value;
    }
    if (used < columns()) value(data, raised, columns() - 1) = narrow_value;
    if (used == columns() && !one) {
      AttentionOperands alone = operands(raised, rise);
      value(alone, raised, 0) = narrow_value;
      const auto outputs = calls_.run(std::move(alone));
      if (!outputs) return outputs.error();
      one = static_cast<double>(at(*outputs, 0));
    }
    const auto outputs = calls_.run(std::move(data));
    if (!outputs) return outputs.error();
    if (used < columns()) one = static_cast<double>(at(*outputs, columns() - 1));
    for (std::int64_t key = begin; key < end; ++key) {
      if (key == raised) continue;
      const double units = static_cast<double>(at(*outputs, key - begin)) / one.value_or(1) /
                           static_cast<double>(rise.ulp);
      if (distance_to_integer(units) > seen_fraction) keys[index(key)] = 0;
    }
  }
  return true;
}

Result<KnowingKeys> RescaleProbe::knowing(std::int64_t raised, double log2_rise) {
  const Rise wanted = rise(log2_rise);
  const std::int64_t last = calls_.shape().kv_len - 1;
  KnowingKeys keys(index(last + 1), 1);
  Result<bool> done = true;
  if (overflow_) done = find_overflow(raised, wanted, 0, last, keys);
  if (done && fraction_ && is_narrow()) done = find_fractions(raised, wanted, 0, last, keys);
  if (!done) return done.error();
  keys[index(raised)] = 1;
  return keys;
}

Result<bool> RescaleProbe::knows(std::int64_t key, std::int64_t raised, double log2_rise) {
  const Rise wanted = rise(log2_rise);
  const std::int64_t last = calls_.shape().kv_len - 1;
  KnowingKeys keys(index(last + 1), 1);
  const auto mark = [&](std::int64_t first, std::int64_t end) {
    return find_overflow(raised, wanted, std::max<std::int64_t>(0, first), std::min(end, last),
                         keys);
  };
  // Pairs of two neighbours; a pair with the raised key proves nothing here.
  Result<bool> done = true;
  if (overflow_ && key - 1 != raised) done = mark(key - 1, key);
  if (done && overflow_ && key + 1 != raised) done = mark(key, key + 1);
  if (done && fraction_ && is_narrow()) done = find_fractions(raised, wanted, key, key, keys);
  if (!done) return done.error();
  return keys[index(key)] != 0;
}

}  // namespace kvsim::gpu
