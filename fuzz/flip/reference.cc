// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sim/error_bounds.h"
#include "sim/exp.h"

namespace kvsim::fuzz {
namespace {

constexpr double u2 = 0x1p-106;  // u² of binary64

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Σ a·b of floats, whose products are exact in binary64, and Σ|a·b|. Each of the n additions is
/// off by at most 2u² of a partial sum, which is at most Σ|a·b|.
struct Dot {
  DoubleDouble sum;
  double absolute = 0;

  [[nodiscard]] double error(std::int64_t terms) const {
    return 2.001 * u2 * static_cast<double>(terms) * absolute;
  }
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

/// Both rows of the tokens for one query head.
struct TokenRows {
  std::span<const float> first;
  std::span<const float> second;
};

/// Σ_d (first_d − second_d) v_d, and Σ of the magnitudes of w_d v_d.
Dot along(const TokenRows& rows, std::span<const float> v) {
  Dot result;
  for (std::size_t d = 0; d < v.size(); ++d) {
    const double value = v[d];
    const double first = static_cast<double>(rows.first[d]) * value;
    const double second = static_cast<double>(rows.second[d]) * value;
    result.sum = result.sum + first;
    result.sum = result.sum + -second;
    result.absolute += std::abs(first - second);
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

}  // namespace

ExactDifference exact_sum_difference(const FlipCase& flip_case) {
  const std::span<const float> state(flip_case[CaseTensor::state]);
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  const Dot first = dot(state, tokens.first(state.size()));
  const Dot second = dot(state, tokens.last(state.size()));
  const auto terms = static_cast<std::int64_t>(state.size());
  const DoubleDouble difference = first.sum - second.sum;
  return {difference,
          outward(first.error(terms) + second.error(terms) + 4 * u2 * std::abs(difference.high))};
}

ExactAttentionCase exact_attention_case(const FlipCase& flip_case) {
  const AttentionShape& shape = flip_case.shape.attention;
  const std::size_t d = at(shape.head_dim);
  const std::size_t keys = at(shape.kv_len);
  const std::span<const float> q(flip_case[CaseTensor::q]);
  const std::span<const float> k(flip_case[CaseTensor::k]);
  const std::span<const float> v(flip_case[CaseTensor::v]);
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  const DoubleDouble scale =
      DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(shape.head_dim)));
  ExactAttentionCase result;
  result.heads.resize(at(shape.query_heads));
  std::vector<DoubleDouble> scores(keys);
  std::vector<DoubleDouble> values(keys);
  for (std::size_t h = 0; h < result.heads.size(); ++h) {
    ExactHead& head = result.heads[h];
    for (auto* each :
         {&head.score, &head.score_absolute, &head.weight, &head.along, &head.along_absolute}) {
      each->resize(keys);
    }
    const std::size_t first_key = h / at(shape.group()) * keys;
    const TokenRows rows{tokens.subspan(h * d, d), tokens.subspan(tokens.size() / 2 + h * d, d)};
    const std::span<const float> query = q.subspan(h * d, d);
    head.largest_query = largest_magnitude(query);
    double token_sum = 0;  // of both rows
    for (std::size_t i = 0; i < d; ++i) {
      const double first = rows.first[i];
      const double second = rows.second[i];
      token_sum += std::abs(first) + std::abs(second);
      head.token_absolute += std::abs(first - second);
    }
    head.token_absolute = outward(head.token_absolute);
    double argument_error = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      const std::span<const float> key = k.subspan((first_key + j) * d, d);
      const Dot score = dot(query, key);
      scores[j] = score.sum * scale;
      head.score[j] = scores[j].high;
      head.score_absolute[j] = outward(score.absolute * scale.high);
      // The scale is within 20u², the product adds 5u², the difference to the largest 3u².
      argument_error = std::max(argument_error, outward(score.error(shape.head_dim) * scale.high +
                                                        32 * u2 * std::abs(scores[j].high)));
      const std::span<const float> value = v.subspan((first_key + j) * d, d);
      const Dot value_along = along(rows, value);
      values[j] = value_along.sum;
      head.along[j] = values[j].high;
      head.along_absolute[j] = outward(value_along.absolute);
      head.largest_key = std::max(head.largest_key, largest_magnitude(key));
      head.largest_value = std::max(head.largest_value, largest_magnitude(value));
    }
    // Each of the 2d additions of `along` is off by 2u² of at most both rows' sum.
    const double value_error = 5 * u2 * static_cast<double>(d) * token_sum * head.largest_value;
    const ExactDifference share = finish_head(scores, values, argument_error, value_error, head);
    result.difference.value = result.difference.value + share.value;
    result.difference.error +=
        share.error +
        4 * u2 * (std::abs(result.difference.value.high) + std::abs(share.value.high));
  }
  result.difference.error = outward(result.difference.error);
  return result;
}

}  // namespace kvsim::fuzz
