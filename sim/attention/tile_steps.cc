// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/tile_steps.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/elementary.h"
#include "softfloat/mutants.h"

namespace kvsim::attention {
namespace {

constexpr double log2_e = 0x1.71547652b82fep+0;
constexpr float log2_e_f32 = 0x1.715476p+0F;
constexpr float ln2 = 0x1.62e43p-1F;

// Sums start from +0 instead of their first number: p is never −0, so that no bit differs.

void add_quad(std::span<const float> p, float r, std::span<float> sums) {
  float a = sums[0] * r;
  float b = sums[1] * r;
  float c = sums[2] * r;
  float d = sums[3] * r;
  for (std::size_t j = 0; j < p.size(); j += 8) {
    a += p[j];
    b += p[j + 2];
    c += p[j + 4];
    d += p[j + 6];
    a += p[j + 1];
    b += p[j + 3];
    c += p[j + 5];
    d += p[j + 7];
  }
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}

void add_packed(std::span<const float> p, float r, std::span<float> sums) {
  std::array<float, 8> a{};
  a[0] = sums[0] * r;
  for (std::size_t j = 0; j < p.size(); j += 8) {
    for (std::size_t i = 0; i < 8; ++i) a[i] += p[j + i];
  }
  const float even = (a[0] + a[2]) + (a[4] + a[6]);
  const float odd = (a[1] + a[3]) + (a[5] + a[7]);
  sums[0] = even + odd;
}

void add_butterfly(std::span<const float> p, float r, std::span<float> sums) {
  std::vector<float> lanes(p.begin(), p.end());
  lanes.resize(std::bit_ceil(p.size()), 0.0F);
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  sums[0] = std::fma(sums[0], r, lanes[0]);
}

}  // namespace

Exponents Exponents::make(const TileRule& rule, float scale, float soft_cap) {
  Exponents e{.fold = rule.fold,
              .soft_cap_rule = rule.soft_cap,
              .soft_cap = soft_cap,
              .remaining_scale = scale};
  if (soft_cap > 0) {
    switch (rule.soft_cap) {
      case SoftCapRule::folded:
        e.cap_factor = scale / soft_cap;
        e.remaining_scale = soft_cap;
        break;
      case SoftCapRule::folded_reciprocal: {
        const float reciprocal = 1 / soft_cap;
        e.cap_factor = scale * reciprocal;
        e.remaining_scale = soft_cap;
        break;
      }
      case SoftCapRule::divided:
        e.cap_factor = scale;
        e.remaining_scale = 1;
        break;
      case SoftCapRule::scaled_before:
        scale = scale / soft_cap;
        break;
    }
  }
  if (e.natural()) {
    e.query_factor = scale;
    e.remaining_scale = 1;
  }
  e.scale_log2 = rule.scale_log2_in_binary32
                     ? e.remaining_scale * log2_e_f32
                     : static_cast<float>(static_cast<double>(e.remaining_scale) * log2_e);
  return e;
}

void Exponents::finish_scores(std::span<float> scores) const {
  if (soft_cap <= 0) return;
  for (float& s : scores) {
    switch (soft_cap_rule) {
      case SoftCapRule::folded:
      case SoftCapRule::folded_reciprocal:
        s = tanh_f32(s * cap_factor);
        break;
      case SoftCapRule::divided: {
        const float scaled = s * cap_factor;
        s = soft_cap * tanh_f32(scaled / soft_cap);
        break;
      }
      case SoftCapRule::scaled_before:
        s = soft_cap * tanh_f32(s);
        break;
    }
  }
}

float Exponents::log_sum(LogSumRule rule, float maximum, float sum) const {
  switch (rule) {
    case LogSumRule::by_scale:
      break;
    case LogSumRule::by_scale_log2:
      return std::fma(maximum, scale_log2 * ln2, log_f32(sum));
    case LogSumRule::base_2: {
      const float scaled = maximum * scale_log2;
      return (scaled + log2_f32(sum)) * ln2;
    }
    case LogSumRule::fused_base_2:
      return std::fma(maximum, scale_log2, log2_f32(sum)) * ln2;
  }
  return std::fma(maximum, remaining_scale, log_f32(sum));
}

float Exponents::unscaled_log_sum(float maximum, float sum, bool base_2) {
  const float log2_sum = maximum + log2_f32(sum);
  return base_2 ? log2_sum : log2_sum * ln2;
}

void scale_and_cap(std::span<float> scores, float scale, float soft_cap) {
  const float factor = soft_cap > 0 ? scale / soft_cap : scale;
  for (float& s : scores) {
    s *= factor;
    if (soft_cap > 0) s = soft_cap * tanh_f32(s);
  }
}

void Exponents::subtract(const RowSteps& steps, std::span<float> scores, float maximum) const {
  const float scaled = maximum * scale_log2;
  switch (fold) {
    case ExponentFold::fused:
    case ExponentFold::fused_rescale:
      steps.multiply_add(scores.data(), scores.size(), scale_log2, -scaled);
      break;
    case ExponentFold::unfused:
      for (float& s : scores) s = s * scale_log2 - scaled;
      break;
    case ExponentFold::natural:
      for (float& s : scores) s -= maximum;
      break;
  }
}

float Exponents::of_rescale(float before, float after) const {
  switch (fold) {
    case ExponentFold::fused:
    case ExponentFold::unfused:
      return (before - after) * scale_log2;
    case ExponentFold::fused_rescale:
      return std::fma(before, scale_log2, -(after * scale_log2));
    case ExponentFold::natural:
      break;
  }
  return before - after;
}

void add_to_row_sum(RowSumRule rule, std::span<const float> p, float r, std::span<float> sums) {
  switch (rule) {
    case RowSumRule::quad:
      return add_quad(p, r, sums);
    case RowSumRule::packed:
      return add_packed(p, r, sums);
    case RowSumRule::butterfly:
      return add_butterfly(p, r, sums);
    case RowSumRule::unit:
      break;  // a product, not made here
  }
}

float finish_row_sum(RowSumRule rule, std::span<const float> sums) {
  if (rule != RowSumRule::quad) return sums[0];
  if (mutant_is_on(Mutant::row_sum_part_lost)) return (sums[0] + sums[2]) + sums[1];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

bool is_emulated(std::int64_t j, std::int64_t columns) {
  constexpr std::int64_t fragment = 32;
  constexpr std::int64_t period = 16;
  constexpr std::int64_t first_of_period = 12;
  const std::int64_t even = j % fragment / 2 * 2;
  return even % period >= first_of_period && j >= fragment && j / fragment < columns / fragment - 1;
}

}  // namespace kvsim::attention
