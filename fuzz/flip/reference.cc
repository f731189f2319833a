// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "fuzz/flip/column_walks.h"
#include "sim/error_bounds.h"
#include "sim/exp.h"
#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

constexpr double u2 = 0x1p-106;  // u² of binary64

/// Of a sum of products of floats, which are exact in binary64: each of the additions is off by at
/// most 2u² of a partial sum, which is at most Σ|a·b|.
double sum_error_of(std::size_t terms, double absolute) {
  return 2.001 * u2 * static_cast<double>(terms) * absolute;
}

/// Σ a·b of floats, and Σ|a·b|.
struct Dot {
  DoubleDouble sum;
  double absolute = 0;
};

/// Double-doubles by column.
struct LongColumns {
  explicit LongColumns(std::size_t count) : high(count), low(count) {}

  std::vector<double> high;
  std::vector<double> low;
};

Dot dot(std::span<const float> a, std::span<const float> b) {
  Dot result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double product = static_cast<double>(a[i]) * static_cast<double>(b[i]);
    result.sum = result.sum + product;
    result.absolute += std::abs(product);
  }
  return result;
}

double largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

/// What one head adds to the difference, with the bound on its error.
ExactDifference finish_head(const std::vector<DoubleDouble>& scores,
                            const std::vector<DoubleDouble>& values, double argument_error,
                            double value_error, ExactHead& head) {
  DoubleDouble largest = scores[0];
  for (const DoubleDouble score : scores) largest = largest < score ? score : largest;
  DoubleDouble sum;
  DoubleDouble total;
  double absolute = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const DoubleDouble weight = exp_reference(scores[j] - largest);
    head.weight[j] = weight.high;
    sum = sum + weight;
    total = total + weight * values[j];
    absolute += weight.high * std::abs(values[j].high);
  }
  head.largest_score = largest.high;
  head.weight_sum = sum.high;
  const DoubleDouble difference = total / sum;
  head.difference = difference.high;
  // Each weight is off by a factor within e^(±2·argument_error) and the 2^−102 of the exponential
  // (below 2^−1074 by less than that); both sums by n additions; then one division.
  const auto n = static_cast<double>(scores.size());
  const double relative = 2 * expm1_above(2 * argument_error) + 2.1 * 0x1p-102 + (8 * n + 32) * u2;
  return {difference, outward((absolute / sum.high) * relative + value_error +
                              0x1p-1000 * n * (1 + std::abs(difference.high)))};
}

/// What belongs to one query head.
struct QueryRows {
  std::span<const float> query;
  std::span<const float> first;  ///< the tokens' rows
  std::span<const float> second;
};

/// One head's share of the difference.
ExactDifference exact_head(const QueryRows& rows, const ExactKeys& keys_and_values,
                           const ColumnMatrix& v, ExactHead& head) {
  const ColumnMatrix& k = keys_and_values.k;
  const std::size_t keys = k.columns();
  const std::size_t d = rows.query.size();
  const DoubleDouble scale =
      DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(rows.query.size())));
  head.query.assign(rows.query.begin(), rows.query.end());
  head.token.resize(d);
  std::vector<double> first(rows.first.begin(), rows.first.end());
  std::vector<double> second(rows.second.begin(), rows.second.end());
  std::vector<double> query_absolute(d);
  std::vector<double> token_absolute(d);
  double token_sum = 0;  // of both rows
  for (std::size_t i = 0; i < d; ++i) {
    query_absolute[i] = std::abs(head.query[i]);
    token_sum += std::abs(first[i]) + std::abs(second[i]);
    head.token[i] = first[i] - second[i];
    token_absolute[i] = outward(std::abs(head.token[i]));
    second[i] = -second[i];
  }

  LongColumns scores(k.stride());
  add_long_products(head.query, k, scores.high, scores.low);
  LongColumns values(v.stride());
  add_long_products(first, v, values.high, values.low);
  add_long_products(second, v, values.high, values.low);
  head.score_absolute.assign(k.stride(), 0);
  add_magnitudes(query_absolute, k, head.score_absolute);
  head.along_absolute.assign(v.stride(), 0);
  add_magnitudes(token_absolute, v, head.along_absolute);
  for (auto* each :
       {&head.score, &head.score_absolute, &head.weight, &head.along, &head.along_absolute}) {
    each->resize(keys);
  }

  std::vector<DoubleDouble> exact_scores(keys);
  std::vector<DoubleDouble> exact_values(keys);
  double argument_error = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    exact_scores[j] = DoubleDouble(scores.high[j], scores.low[j]) * scale;
    head.score[j] = exact_scores[j].high;
    // The additions, then: the scale is within 20u², the product adds 5u², the difference to the
    // largest 3u².
    const double sum_error = sum_error_of(d, head.score_absolute[j]);
    head.score_absolute[j] = outward(head.score_absolute[j] * scale.high);
    argument_error = std::max(argument_error,
                              outward(sum_error * scale.high + 32 * u2 * std::abs(head.score[j])));
    exact_values[j] = DoubleDouble(values.high[j], values.low[j]);
    head.along[j] = exact_values[j].high;
    head.along_absolute[j] = outward(head.along_absolute[j]);
  }
  // Each of the 2d additions of `along` is off by 2u² of at most both rows' sum.
  const double value_error =
      5 * u2 * static_cast<double>(d) * token_sum * keys_and_values.largest_value;
  return finish_head(exact_scores, exact_values, argument_error, value_error, head);
}

}  // namespace

DoubleDouble exact_dot(std::span<const float> a, std::span<const float> b) { return dot(a, b).sum; }

ExactDifference exact_sum_difference(const FlipCase& flip_case) {
  const std::span<const float> state(flip_case[CaseTensor::state]);
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  const Dot first = dot(state, tokens.first(state.size()));
  const Dot second = dot(state, tokens.last(state.size()));
  const DoubleDouble difference = first.sum - second.sum;
  return {difference, outward(sum_error_of(state.size(), first.absolute + second.absolute) +
                              4 * u2 * std::abs(difference.high))};
}

ExactAttentionCase exact_attention_case(const FlipCase& flip_case) {
  const AttentionShape& shape = flip_case.shape.attention;
  const std::size_t d = index(shape.head_dim);
  const std::size_t keys = index(shape.kv_len);
  const std::span<const float> q(flip_case[CaseTensor::q]);
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  ExactAttentionCase result;
  result.heads.resize(index(shape.query_heads));
  result.keys.reserve(index(shape.kv_heads));
  for (std::size_t kv_head = 0; kv_head < index(shape.kv_heads); ++kv_head) {
    const auto of_head = [&](CaseTensor tensor) {
      return std::span<const float>(flip_case[tensor]).subspan(kv_head * keys * d, keys * d);
    };
    const std::span<const float> k = of_head(CaseTensor::k);
    const std::span<const float> v = of_head(CaseTensor::v);
    const ColumnMatrix by_key(v, d, keys, true);
    result.keys.push_back(
        {ColumnMatrix(k, d, keys, true), ColumnMatrix(v, keys, d, false), largest_magnitude(v)});
    for (std::size_t g = 0; g < index(shape.group()); ++g) {
      const std::size_t h = kv_head * index(shape.group()) + g;
      const std::span<const float> query = q.subspan(h * d, d);
      const std::span<const float> first = tokens.subspan(h * d, d);
      const std::span<const float> second = tokens.subspan(tokens.size() / 2 + h * d, d);
      const ExactDifference share =
          exact_head({query, first, second}, result.keys.back(), by_key, result.heads[h]);
      result.difference.value = result.difference.value + share.value;
      result.difference.error +=
          share.error +
          4 * u2 * (std::abs(result.difference.value.high) + std::abs(share.value.high));
    }
  }
  result.difference.error = outward(result.difference.error);
  return result;
}

}  // namespace kvsim::fuzz
