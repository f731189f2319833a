// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/vector_steps.h"
#include "sim/elementary.h"
#include "softfloat/mutants.h"

namespace kvsim::attention {
namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();
constexpr float ln2 = 0x1.62e43p-1F;
constexpr float log2_e = 0x1.715476p+0F;
constexpr std::int64_t most_lanes = 32;

/// Lanes over which FlashAttention's combine kernel spreads the splits: in FlashAttention-2 by the
/// head_dim that its kernel is compiled for, later by whether it is beyond 64.
std::int64_t lanes_of(SplitMerge merge, std::int64_t splits, std::int64_t head_dim) {
  std::int64_t widest = head_dim > 64 ? 32 : 16;
  if (merge == SplitMerge::log_sum_weights) {
    const bool by_32 = head_dim <= 32 || (head_dim > 64 && head_dim <= 96);
    const bool by_128 = (head_dim > 96 && head_dim <= 128) || head_dim > 192;
    widest = by_32 ? 8 : by_128 ? 32 : 16;
  }
  return std::min(widest,
                  static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(splits))));
}

/// e^(lse − largest).
float weight_of(SplitMerge merge, float lse, float largest, const ExpFunction& exp) {
  if (merge != SplitMerge::base2_normalized_weights) return exp.exp(lse - largest);
  const float scaled = lse * log2_e;
  const float scaled_largest = largest * log2_e;
  return exp.exp2(scaled - scaled_largest);
}

/// Σ exp(lse − largest): lane i takes i, i + W, …; then lanes are joined W/2, W/4, … apart.
float sum_of_weights(SplitMerge merge, const SplitOutputs& parts, float largest,
                     const ExpFunction& exp) {
  const std::int64_t width = lanes_of(merge, parts.splits, parts.head_dim);
  float lanes[most_lanes] = {};
  for (std::size_t s = 0; s < parts.log_sums.size(); ++s) {
    // Numbers that are not negative: that a lane starts from +0 instead of its first one and that
    // absent ones count as +0 changes no bit.
    lanes[s % static_cast<std::size_t>(width)] += weight_of(merge, parts.log_sums[s], largest, exp);
  }
  for (std::int64_t half = width / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

float merge_weighted(SplitMerge merge, const SplitOutputs& parts, const ExpFunction& exp,
                     std::span<float> out) {
  const bool normalized = merge != SplitMerge::log_sum_weights;
  const float largest = *std::max_element(parts.log_sums.begin(), parts.log_sums.end());
  if (largest == nothing) {
    // FlashAttention-2 skips no split: one that is NaN stays so under a weight of 0.
    for (std::size_t s = 0; s < parts.log_sums.size() && !normalized; ++s) {
      const float* const o = parts.outputs + static_cast<std::int64_t>(s) * parts.stride;
      multiply_add({o, out.size()}, 0, out, parts.level);
    }
    return nothing;
  }
  float sum = sum_of_weights(merge, parts, largest, exp);
  if (mutant_is_on(Mutant::empty_splits_count)) {
    sum += static_cast<float>(parts.splits - std::ssize(parts.log_sums));
  }
  const float lse = log_f32(sum) + largest;
  const float inverse = 1 / sum;
  for (std::size_t s = 0; s < parts.log_sums.size(); ++s) {
    const std::size_t weighted = mutant_is_on(Mutant::equal_split_weights) ? 0 : s;
    const float log_sum = parts.log_sums[weighted];
    const float weight =
        normalized ? weight_of(merge, log_sum, largest, exp) * inverse : exp.exp(log_sum - lse);
    if (normalized && weight == 0) continue;
    const float* const o = parts.outputs + static_cast<std::int64_t>(s) * parts.stride;
    multiply_add({o, out.size()}, weight, out, parts.level);
  }
  return lse;
}

float merge_states(const SplitOutputs& parts, const ExpFunction& exp, std::span<float> out) {
  float m = nothing;
  float sum = 0;
  std::vector<float> scaled(out.size());
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
    for (std::size_t d = 0; d < out.size(); ++d) scaled[d] = o[d] * here;
    multiply_add(out, before, scaled, parts.level);
    std::copy(scaled.begin(), scaled.end(), out.begin());
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
  return merge_weighted(merge, parts, exp, out);
}

}  // namespace kvsim::attention
