// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/online_merge.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kvsim::plain {
namespace {

Merged merge_flashinfer(const std::vector<Part>& parts, std::size_t head_dim) {
  Merged merged{std::vector<float>(head_dim, 0.0F)};
  float m = -infinity;
  float d = 1;
  for (const Part& part : parts) {
    if (part.log == -infinity) continue;
    if (m == -infinity) {
      m = part.log;
      merged.o = part.o;
      continue;
    }
    const float grown = std::max(m, part.log);
    const float a = exp2_flushed(m - grown);
    const float b = exp2_flushed(part.log - grown);
    d = std::fma(d, a, b);
    for (std::size_t i = 0; i < head_dim; ++i) {
      const float scaled = part.o[i] * b;
      merged.o[i] = std::fma(merged.o[i], a, scaled);
    }
    m = grown;
  }
  if (m == -infinity) return merged;
  for (float& x : merged.o) x = x / d;
  const float log2 = m + log2_f(d);
  merged.lse = log2 * ln2;
  return merged;
}

// Lanes of the warp that sums the weights of the splits.
std::size_t merge_lanes(Tiling tiling, std::int64_t head_dim, std::size_t splits) {
  std::size_t lanes = head_dim > 64 ? 32 : 16;
  if (tiling == Tiling::fa2) {
    std::int64_t d = 256;
    for (const std::int64_t size : {192, 128, 96, 64, 32}) {
      if (head_dim <= size) d = size;
    }
    if (d % 128 == 0) {
      lanes = 32;
    } else {
      lanes = d % 64 == 0 ? 16 : 8;
    }
  }
  return std::min(lanes, std::bit_ceil(splits));
}

Merged merge_flash_attention(Tiling tiling, const std::vector<Part>& parts, std::size_t head_dim) {
  Merged merged{std::vector<float>(head_dim, 0.0F)};
  float m = -infinity;
  for (const Part& part : parts) m = std::max(m, part.log);
  if (m == -infinity) {
    // Every weight is 0; FlashAttention-2 multiplies by it, which keeps a NaN.
    if (tiling == Tiling::fa2) {
      for (const Part& part : parts) {
        for (std::size_t i = 0; i < part.o.size(); ++i) {
          merged.o[i] = std::fma(0.0F, part.o[i], merged.o[i]);
        }
      }
    }
    return merged;
  }
  const auto weight = [&](float log) {
    if (log == -infinity) return 0.0F;
    if (tiling != Tiling::fa4) return exp_f(log - m);
    const float scaled = log * log2e;
    const float scaled_maximum = m * log2e;
    return exp2_flushed(scaled - scaled_maximum);
  };
  std::vector<float> lanes(merge_lanes(tiling, static_cast<std::int64_t>(head_dim), parts.size()),
                           0.0F);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    lanes[s % lanes.size()] = lanes[s % lanes.size()] + weight(parts[s].log);
  }
  const float total = butterfly(lanes);
  merged.lse = log_f(total) + m;
  const float inverse = 1.0F / total;
  for (const Part& part : parts) {
    const float w = tiling == Tiling::fa2
                        ? (part.log == -infinity ? 0.0F : exp_f(part.log - merged.lse))
                        : weight(part.log) * inverse;
    if (w == 0 && tiling != Tiling::fa2) continue;
    for (std::size_t i = 0; i < part.o.size(); ++i)
      merged.o[i] = std::fma(w, part.o[i], merged.o[i]);
  }
  return merged;
}

}  // namespace

Merged merge_parts(Tiling tiling, const std::vector<Part>& parts, std::size_t head_dim) {
  if (tiling == Tiling::flashinfer) return merge_flashinfer(parts, head_dim);
  return merge_flash_attention(tiling, parts, head_dim);
}

}  // namespace kvsim::plain
