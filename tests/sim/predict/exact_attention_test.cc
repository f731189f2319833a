// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/exact_attention.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <vector>

#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

AttentionNumbers numbers(const AttentionShape& shape) {
  AttentionNumbers result{shape, {}, {}, {}};
  const auto fill = [](std::vector<float>& to, std::int64_t count, std::uint64_t stream) {
    for (std::int64_t i = 0; i < count; ++i) {
      to.push_back(static_cast<float>(normal(3, stream, static_cast<std::uint64_t>(i))));
    }
  };
  fill(result.q, shape.query_heads * shape.query_len * shape.head_dim, 0);
  fill(result.k, shape.kv_heads * shape.kv_len * shape.head_dim, 1);
  fill(result.v, shape.kv_heads * shape.kv_len * shape.head_dim, 2);
  return result;
}

AttentionLayer layer(float scale, std::int64_t window, float soft_cap) {
  return {softfloat::binary32, {true, window, soft_cap}, scale};
}

// Attention as its definition says, in long double: 64 bits are enough to tell 2^-50.
std::vector<long double> by_definition(const AttentionNumbers& n, const AttentionLayer& o,
                                       std::int64_t head, std::int64_t query) {
  const AttentionShape& s = n.shape;
  const std::int64_t last = s.kv_len - s.query_len + query;
  const std::int64_t first =
      o.mask.window > 0 ? std::max<std::int64_t>(0, last - o.mask.window + 1) : 0;
  const std::int64_t kv = head / s.group() * s.kv_len;
  const long double scale = o.scale != 0 ? static_cast<long double>(o.scale)
                                         : 1 / std::sqrt(static_cast<long double>(s.head_dim));
  long double sum = 0;
  std::vector<long double> out(static_cast<std::size_t>(s.head_dim), 0);
  for (std::int64_t j = first; j <= last; ++j) {
    long double score = 0;
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
      score += static_cast<long double>(
                   n.q[static_cast<std::size_t>((head * s.query_len + query) * s.head_dim + d)]) *
               static_cast<long double>(n.k[static_cast<std::size_t>((kv + j) * s.head_dim + d)]);
    }
    score *= scale;
    if (o.mask.soft_cap != 0) score = o.mask.soft_cap * std::tanh(score / o.mask.soft_cap);
    const long double weight = std::exp(score);
    sum += weight;
    for (std::int64_t d = 0; d < s.head_dim; ++d) {
      out[static_cast<std::size_t>(d)] +=
          weight *
          static_cast<long double>(n.v[static_cast<std::size_t>((kv + j) * s.head_dim + d)]);
    }
  }
  for (long double& value : out) value /= sum;
  return out;
}

TEST(ExactAttention, IsAttentionByDefinition) {
  const AttentionShape shape{
      .query_heads = 4, .kv_heads = 2, .query_len = 3, .kv_len = 21, .head_dim = 10};
  const AttentionNumbers inputs = numbers(shape);
  for (const AttentionLayer& options :
       {layer(0, 0, 0), layer(0.7F, 0, 0), layer(0, 0, 1.5F), layer(0, 5, 0), layer(2, 100, 3)}) {
    const ExactAttention exact(inputs, options);
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t query = 0; query < 3; ++query) {
        const std::vector<DoubleDouble> found = exact.row(head, query);
        const std::vector<long double> expected = by_definition(inputs, options, head, query);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t d = 0; d < found.size(); ++d) {
          EXPECT_NEAR(found[d].high, static_cast<double>(expected[d]), 1e-15) << head << ' ' << d;
        }
      }
    }
  }
}

TEST(ExactAttention, TanhAgainstMpfr) {
  mpfr_t x;
  mpfr_init2(x, 200);
  for (const double value : {-45.0, -3.25, -0.5, -0x1p-20, 0.0, 0x1p-30, 0.1, 1.0, 7.5, 39.0}) {
    const DoubleDouble found = tanh_reference(DoubleDouble(value));
    mpfr_set_d(x, value, MPFR_RNDN);
    mpfr_tanh(x, x, MPFR_RNDN);
    mpfr_sub_d(x, x, found.high, MPFR_RNDN);
    mpfr_sub_d(x, x, found.low, MPFR_RNDN);
    EXPECT_LT(std::abs(mpfr_get_d(x, MPFR_RNDN)), 0x1p-98) << value;
  }
  mpfr_clear(x);
}

}  // namespace
}  // namespace kvsim
