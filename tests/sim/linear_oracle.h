// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/units/dot.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"

/// Linear layers once more, one output at a time in plain loops, written from the description of
/// each kernel and not from the table: no Order, no engine.
namespace kvsim::test {

/// One output's operands.
struct OneOutput {
  std::vector<float> x;
  std::vector<float> w;
  std::int64_t rows = 1;     ///< of the whole layer
  std::int64_t outputs = 1;  ///< of the whole layer
  std::int64_t column = 0;   ///< which output this is
  std::int64_t row = 0;      ///< of which row
  softfloat::Format storage;
  std::int64_t multiprocessors = 1;

  [[nodiscard]] std::int64_t terms() const { return static_cast<std::int64_t>(x.size()); }
};

inline softfloat::Bits code(const softfloat::Format& format, float value) {
  return softfloat::convert(format, softfloat::binary32, std::bit_cast<std::uint32_t>(value)).bits;
}
inline float value(const softfloat::Format& format, softfloat::Bits bits) {
  return std::bit_cast<float>(
      static_cast<std::uint32_t>(softfloat::convert(softfloat::binary32, format, bits).bits));
}
inline float round_to(const softfloat::Format& format, float x) {
  return value(format, code(format, x));
}

/// Terms begin … end − 1 through a matrix unit, from +0.
inline float unit_sum(const OneOutput& o, const std::string& unit_name, std::int64_t begin,
                      std::int64_t end) {
  const MatrixUnit& unit = *find_matrix_unit(unit_name);
  std::vector<softfloat::Bits> a;
  std::vector<softfloat::Bits> b;
  for (std::int64_t k = begin; k < end; ++k) {
    a.push_back(code(unit.operand, o.x[static_cast<std::size_t>(k)]));
    b.push_back(code(unit.operand, o.w[static_cast<std::size_t>(k)]));
  }
  return value(unit.output, unit_dot(unit, {.a = a, .b = b}));
}

/// The same in binary32 by fused multiply-adds.
inline float fma_sum(const OneOutput& o, std::int64_t begin, std::int64_t end) {
  float sum = 0;
  for (std::int64_t k = begin; k < end; ++k) {
    const auto at = static_cast<std::size_t>(k);
    sum = k == begin ? o.x[at] * o.w[at] : std::fma(o.x[at], o.w[at], sum);
  }
  return sum;
}

using PartSum = std::function<float(const OneOutput&, std::int64_t, std::int64_t)>;

/// Blocks of `length` terms, their sums added in turn.
inline float in_blocks(const OneOutput& o, std::int64_t length, const PartSum& part) {
  float sum = 0;
  for (std::int64_t begin = 0; begin < o.terms(); begin += length) {
    const float block = part(o, begin, std::min(o.terms(), begin + length));
    sum = begin == 0 ? block : sum + block;
  }
  return sum;
}

/// How many splits fill the multiprocessors: 64 × 64 tiles, K in steps of 64, at most 16 splits of
/// at least 4 steps.
inline std::int64_t splits_of(const OneOutput& o) {
  const auto up = [](std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const std::int64_t tiles = up(o.rows, 64) * up(o.outputs, 64);
  const std::int64_t steps = up(o.terms(), 64);
  if (static_cast<double>(tiles) >= 0.8 * static_cast<double>(o.multiprocessors)) return 1;
  std::vector<double> efficiency(1, 0);
  for (std::int64_t s = 1; s <= std::min<std::int64_t>(16, steps / 4); ++s) {
    const double waves = static_cast<double>(tiles * s) / static_cast<double>(o.multiprocessors);
    const bool changes = s == 1 || up(steps, s) != up(steps, s - 1);
    efficiency.push_back(changes ? waves / std::ceil(waves) : 0);
  }
  const double best = *std::max_element(efficiency.begin(), efficiency.end());
  for (std::size_t s = 1; s < efficiency.size(); ++s) {
    if (efficiency[s] > 0 && efficiency[s] >= 0.85 * best) return static_cast<std::int64_t>(s);
  }
  return 1;
}

enum class Joined { plain, rounded_parts, rounded_total };

inline float split_sum(const OneOutput& o, Joined joined, const PartSum& part) {
  const std::int64_t steps = (o.terms() + 63) / 64;
  const std::int64_t splits = splits_of(o);
  const std::int64_t length = (steps + splits - 1) / splits * 64;
  if (splits == 1) return part(o, 0, o.terms());
  float sum = 0;
  for (std::int64_t begin = 0; begin < o.terms(); begin += length) {
    float mine = part(o, begin, std::min(o.terms(), begin + length));
    if (joined == Joined::rounded_parts) mine = round_to(o.storage, mine);
    sum = begin == 0 ? mine : sum + mine;
    if (joined == Joined::rounded_total) sum = round_to(o.storage, sum);
  }
  return sum;
}

/// One warp: lane i adds terms i, i + lanes, …; then lanes exchange with those half as far away.
inline float warp_sum(const OneOutput& o, std::size_t lanes) {
  std::vector<float> sum(lanes, 0);
  std::vector<bool> has(lanes, false);
  for (std::size_t k = 0; k < o.x.size(); ++k) {
    const std::size_t lane = k % lanes;
    sum[lane] = has[lane] ? std::fma(o.x[k], o.w[k], sum[lane]) : o.x[k] * o.w[k];
    has[lane] = true;
  }
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      if (has[i + half]) sum[i] = has[i] ? sum[i] + sum[i + half] : sum[i + half];
      has[i] = has[i] || has[i + half];
    }
  }
  return sum[0];
}

/// MKL's few-row kernels: the first `leading` products all go to lane 0 of `lanes` lanes, which
/// multiply and then add and are joined by halves; what does not fill the lanes at the end is added
/// to their sum.
inline float lane_sum(const OneOutput& o, std::size_t lanes, std::size_t leading) {
  std::vector<float> sum(lanes, 0);
  const std::size_t whole = leading + (o.x.size() - leading) / lanes * lanes;
  for (std::size_t k = 0; k < whole; ++k) {
    const float product = o.x[k] * o.w[k];
    float& lane = sum[k < leading ? 0 : (k - leading) % lanes];
    lane = leading == 0 && k < lanes ? product : lane + product;
  }
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  for (std::size_t k = whole; k < o.x.size(); ++k) {
    const float product = o.x[k] * o.w[k];
    sum[0] = k == 0 ? product : sum[0] + product;
  }
  return sum[0];
}

/// As lane_sum() of four lanes, which take a multiple of eight terms.
inline float second_edge_sum(const OneOutput& o, std::size_t leading) {
  std::vector<float> product;
  for (std::size_t k = 0; k < o.x.size(); ++k) product.push_back(o.x[k] * o.w[k]);
  float lane[4] = {0, 0, 0, 0};
  std::size_t k = 0;
  for (; k < leading; ++k) lane[0] = lane[0] + product[k];
  for (; k + 8 <= product.size(); k += 8) {
    for (std::size_t i = 0; i < 8; ++i) lane[i % 4] = lane[i % 4] + product[k + i];
  }
  float sum = (lane[0] + lane[2]) + (lane[1] + lane[3]);
  for (; k < product.size(); ++k) sum = sum + product[k];
  return sum;
}

/// ATen's dot product of reduced formats: 4 accumulators of 16 lanes, then one of 8 for each 16
/// terms that are left, then the others.
inline float aten_dot(const OneOutput& o) {
  std::vector<float> lane(64, 0);
  std::vector<float> rest(8, 0);
  const auto halve = [](std::vector<float>& sums) {
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  };
  const std::size_t whole = o.x.size() - o.x.size() % 64;
  const std::size_t vectors = o.x.size() - o.x.size() % 16;
  for (std::size_t k = 0; k < vectors; ++k) {
    float& sum = k < whole ? lane[k % 64] : rest[k % 8];
    sum = std::fma(o.x[k], o.w[k], sum);
  }
  float sum = halve(lane) + halve(rest);
  for (std::size_t k = vectors; k < o.x.size(); ++k) sum = std::fma(o.x[k], o.w[k], sum);
  return sum;
}

/// Where one output stands among the last ones beyond a multiple of four: 1, 2, 3; 0: it does not.
inline std::int64_t place_at_edge(std::int64_t column, std::int64_t outputs) {
  return std::max<std::int64_t>(0, column + 1 - outputs / 4 * 4);
}

/// A single row of MKL.
inline float one_row_sum(const OneOutput& o, std::int64_t edge, std::size_t leading,
                         std::size_t edge_leading) {
  if (edge == 0) return lane_sum(o, 4, leading);
  return edge == 2 ? second_edge_sum(o, edge_leading) : lane_sum(o, 8, edge_leading);
}

inline float many_rows_sum(const OneOutput& o) {
  const std::int64_t k = o.terms();
  return in_blocks(o, k > 192 && k < 384 ? k / 2 : 192, fma_sum);
}

inline float torch_float32(const OneOutput& o) {
  const std::int64_t edge = place_at_edge(o.column, o.outputs);
  if (o.rows == 1) {
    return one_row_sum(o, edge, (o.x.size() - 1) % 4 + 1, std::min<std::size_t>(4, o.x.size()));
  }
  if (o.rows < 4 || o.outputs < 12) return lane_sum(o, edge > 0 ? 8 : 4, 0);
  return many_rows_sum(o);
}

/// With MKL_CBWR=AVX2: one product before the others. One output of many rows is one row of many.
inline float torch_avx2_float32(const OneOutput& o) {
  if (o.rows == 1) return one_row_sum(o, place_at_edge(o.column, o.outputs), 1, 1);
  if (o.outputs == 1) return one_row_sum(o, place_at_edge(o.row, o.rows), 1, 1);
  if (o.rows < 4 || o.outputs < 12) {
    return lane_sum(o, place_at_edge(o.column, o.outputs) > 0 ? 8 : 4, 0);
  }
  return many_rows_sum(o);
}

inline float torch_bfloat16(const OneOutput& o) {
  if (o.rows * o.outputs * o.terms() <= 4096) return aten_dot(o);
  const std::int64_t block = o.rows == 1 || o.terms() <= 1024 ? 512 : 1024;
  return in_blocks(o, block, [](const OneOutput& part, std::int64_t begin, std::int64_t end) {
    return unit_sum(part, "x86.vdpbf16ps.bf16.f32", begin, end);
  });
}

}  // namespace kvsim::test
