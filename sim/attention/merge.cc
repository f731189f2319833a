// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/attention/families.h"
#include "sim/elementary.h"

namespace kvsim::attention {
namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();
constexpr float ln2 = 0x1.62e43p-1F;
constexpr std::int64_t most_lanes = 32;

/// Lanes over which FlashAttention's combine kernel spreads the splits.
std::int64_t lanes_of(std::int64_t splits, std::int64_t head_dim) {
  const std::int64_t widest = head_dim % 128 == 0 ? 32 : head_dim % 64 == 0 ? 16 : 8;
  return std::min(widest,
                  static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(splits))));
}

/// Σ exp(lse − largest): lane i takes i, i + W, …; then lanes are joined W/2, W/4, … apart.
float sum_of_weights(const SplitOutputs& parts, float largest, const ExpFunction& exp) {
  const std::int64_t width = lanes_of(parts.splits, parts.head_dim);
  float lanes[most_lanes] = {};
  for (std::size_t s = 0; s < parts.log_sums.size(); ++s) {
    // Numbers that are not negative: that a lane starts from +0 instead of its first one and that
    // absent ones count as +0 changes no bit.
    lanes[s % static_cast<std::size_t>(width)] += exp.exp(parts.log_sums[s] - largest);
  }
  for (std::int64_t half = width / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float merge_weighted(const SplitOutputs& parts, bool normalized, const ExpFunction& exp,
                     std::span<float> out) {
  const float largest = *std::max_element(parts.log_sums.begin(), parts.log_sums.end());
  if (largest == nothing) return nothing;
  const float sum = sum_of_weights(parts, largest, exp);
  const float lse = log_f32(sum) + largest;
  const float inverse = 1 / sum;
  for (std::size_t s = 0; s < parts.log_sums.size(); ++s) {
    const float weight = normalized ? exp.exp(parts.log_sums[s] - largest) * inverse
                                    : exp.exp(parts.log_sums[s] - lse);
    if (normalized && weight == 0) continue;
    const float* const o = parts.outputs + static_cast<std::int64_t>(s) * parts.stride;
    for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::fma(weight, o[d], out[d]);
  }
  return lse;
}

float merge_states(const SplitOutputs& parts, const ExpFunction& exp, std::span<float> out) {
  float m = nothing;
  float sum = 0;
  for (std::size_t s = 0; s < parts.log_sums.size(); ++s) {
    const float own = parts.log_sums[s];
    if (own == nothing) continue;
    const float* const o = parts.outputs + static_cast<std::int64_t>(s) * parts.stride;
    if (m == nothing) {
      m = own;
      sum = 1;
      std::copy_n(o, out.size(), out.begin());
      continue;
    }
    const float largest = std::max(m, own);
    const float before = exp.exp2(m - largest);
    const float here = exp.exp2(own - largest);
    m = largest;
    sum = std::fma(sum, before, here);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] = std::fma(out[d], before, o[d] * here);
  }
  if (m == nothing) return nothing;
  for (float& x : out) x /= sum;
  return (m + log2_f32(sum)) * ln2;
}

}  // namespace

float merge_splits(SplitMerge merge, const SplitOutputs& parts, const ExpFunction& exp,
                   std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  if (merge == SplitMerge::serial_states) return merge_states(parts, exp, out);
  return merge_weighted(parts, merge == SplitMerge::normalized_weights, exp, out);
}

}  // namespace kvsim::attention
