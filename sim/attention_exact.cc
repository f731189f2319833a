// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <bit>
#include <cmath>
#include <cstddef>

#include "sim/attention_row.h"
#include "sim/exp.h"
#include "softfloat/arithmetic.h"
#include "softfloat/exact_sum.h"
#include "softfloat/host.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

/// An exact sum as a double-double.
DoubleDouble to_double_double(softfloat::ExactAccumulator sum) {
  const double high = std::bit_cast<double>(sum.round(softfloat::binary64).bits);
  sum.add(-high);
  return {high, std::bit_cast<double>(sum.round(softfloat::binary64).bits)};
}

}  // namespace

std::vector<DoubleDouble> exact_scores(const AttentionRow& row) {
  const DoubleDouble scale =
      DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(row.head_dim)));
  std::vector<DoubleDouble> scores(index(row.keys));
  for (std::int64_t j = 0; j < row.keys; ++j) {
    softfloat::ExactAccumulator sum;
    for (std::int64_t d = 0; d < row.head_dim; ++d) {
      sum.add_product(row.q[index(d)], row.k_transposed[index(d * row.key_stride + j)]);
    }
    scores[index(j)] = to_double_double(sum) * scale;
  }
  return scores;
}

DoubleDouble score_difference(DoubleDouble score, DoubleDouble largest) {
  // The low part of a sum with an infinite term would be NaN.
  if (!std::isfinite(score.high) || !std::isfinite(largest.high)) return score.high - largest.high;
  return score - largest;
}

ExactSoftmax exact_softmax(std::span<const DoubleDouble> scores) {
  DoubleDouble largest = scores[0];
  for (const DoubleDouble score : scores) {
    if (largest < score) largest = score;
  }
  ExactSoftmax result;
  result.p.reserve(scores.size());
  for (const DoubleDouble score : scores) {
    result.p.push_back(exp_reference(score_difference(score, largest)));
    result.row_sum = result.row_sum + result.p.back();
  }
  for (DoubleDouble& p : result.p) p = p / result.row_sum;
  return result;
}

std::vector<DoubleDouble> exact_values(const AttentionRow& row, std::span<const DoubleDouble> p) {
  std::vector<DoubleDouble> values(index(row.head_dim));
  for (std::int64_t d = 0; d < row.head_dim; ++d) {
    softfloat::ExactAccumulator sum;
    for (std::int64_t j = 0; j < row.keys; ++j) {
      const double v = row.v[index(j * row.head_dim + d)];
      sum.add_product(p[index(j)].high, v);
      if (p[index(j)].low != 0) sum.add_product(p[index(j)].low, v);
    }
    values[index(d)] = to_double_double(sum);
  }
  return values;
}

double round_to(const softfloat::Format& format, DoubleDouble value) {
  if (value.low == 0) {
    const softfloat::Bits bits = softfloat::from_double(value.high);
    return softfloat::to_double(format, softfloat::convert(format, softfloat::binary64, bits).bits);
  }
  softfloat::ExactAccumulator sum;
  sum.add(value.high);
  if (value.low != 0) sum.add(value.low);
  return softfloat::to_double(format, sum.round(format).bits);
}

const softfloat::Format& scores_format(const AttentionArithmetic& arithmetic) {
  return arithmetic.round_scores ? arithmetic.storage : arithmetic.accumulator;
}
const softfloat::Format& p_format(const AttentionArithmetic& arithmetic) {
  return arithmetic.round_p ? arithmetic.storage : arithmetic.accumulator;
}
const softfloat::Format& out_format(const AttentionArithmetic& arithmetic) {
  return arithmetic.round_out ? arithmetic.storage : arithmetic.accumulator;
}

}  // namespace kvsim
