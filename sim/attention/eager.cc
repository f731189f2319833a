// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/visible_keys.h"
#include "sim/elementary.h"
#include "sim/tasks.h"

namespace kvsim::attention {
namespace {

using softfloat::Format;

constexpr float no_score = -std::numeric_limits<float>::infinity();

class Eager {
 public:
  Eager(const Run& run, ProductSum scores, ProductSum values, Order row_sum)
      : run_(run),
        rule_(*run.kernel.eager),
        scores_(std::move(scores)),
        values_(std::move(values)),
        row_sum_(std::move(row_sum)),
        exp_(gpu_exp_base_e(run, run.kernel.eager->exp == SoftmaxExp::gpu)) {}

  Result<bool> run_tile(const QueryTile& tile, std::span<float> out) const {
    const AttentionShape& shape = run_.shape();
    const std::int64_t rows = tile.count * shape.group();
    std::vector<float> q(index(rows * shape.head_dim));
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(run_.problem.q + run_.row_of(tile, row) * shape.head_dim, shape.head_dim,
                  q.data() + row * shape.head_dim);
    }
    std::vector<float> k_scaled;
    NumberPointer k = run_.keys(tile.kv_head);
    if (rule_.scale_on_both) {
      const float factor = std::sqrt(run_.scale);
      const float* const keys = k.floats();
      k_scaled.assign(keys, keys + shape.kv_len * shape.head_dim);
      multiply_all(q, factor);
      multiply_all(k_scaled, factor);
      k = k_scaled.data();
    }
    std::vector<float> p(index(rows * shape.kv_len));
    Result<bool> done = scores_.multiply({.rows = rows,
                                          .terms = shape.head_dim,
                                          .columns = shape.kv_len,
                                          .a = q.data(),
                                          .a_stride = shape.head_dim,
                                          .b = k,
                                          .b_stride = shape.head_dim,
                                          .b_transposed = true},
                                         p.data(), shape.kv_len, run_.engine_of_one());
    if (!done) return done;
    to_storage(p);
    finish_scores(tile, p);
    done = softmax(rows, p);
    if (!done) return done;
    std::vector<float> o(index(rows * shape.head_dim));
    done = values_.multiply({.rows = rows,
                             .terms = shape.kv_len,
                             .columns = shape.head_dim,
                             .a = p.data(),
                             .a_stride = shape.kv_len,
                             .b = run_.values(tile.kv_head),
                             .b_stride = shape.head_dim},
                            o.data(), shape.head_dim, run_.engine_of_one());
    if (!done) return done;
    to_storage(o);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(o.data() + row * shape.head_dim, shape.head_dim,
                  out.data() + run_.row_of(tile, row) * shape.head_dim);
    }
    return true;
  }

 private:
  void to_storage(std::span<float> values) const {
    static_cast<void>(
        round_values(run_.problem.storage, values, values, run_.options.engine.level));
  }

  void multiply_all(std::span<float> values, float factor) const {
    for (float& x : values) x *= factor;
    to_storage(values);
  }

  void finish_scores(const QueryTile& tile, std::span<float> scores) const {
    const AttentionShape& shape = run_.shape();
    if (!rule_.scale_on_both) multiply_all(scores, run_.scale);
    if (const float cap = run_.problem.mask.soft_cap; cap > 0) {
      for (float& s : scores) s /= cap;
      to_storage(scores);
      for (float& s : scores) s = tanh_f32(s);
      to_storage(scores);
      multiply_all(scores, cap);
    }
    const std::int64_t rows = tile.count * shape.group();
    for (std::int64_t row = 0; row < rows; ++row) {
      const KeyRange seen = visible_keys(shape, run_.problem.mask, run_.query_of(tile, row));
      float* const s = scores.data() + row * shape.kv_len;
      for (std::int64_t j = 0; j < shape.kv_len; ++j) {
        if (j < seen.begin || j >= seen.end) s[j] = no_score;
      }
    }
  }

  /// Scores become probabilities, rounded to storage.
  Result<bool> softmax(std::int64_t rows, std::span<float> scores) const {
    const std::int64_t keys = run_.shape().kv_len;
    const auto step = [&](std::span<float> values) {
      if (rule_.softmax_in_storage) to_storage(values);
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<float> s = scores.subspan(index(row * keys), index(keys));
      const float largest = *std::max_element(s.begin(), s.end());
      for (float& x : s) x -= largest;
    }
    step(scores);
    exp_.exp(scores, scores, run_.options.engine.level);
    step(scores);
    const Format& sums = rule_.softmax_in_storage ? run_.problem.storage : softfloat::binary32;
    const std::vector<float> ones(index(keys), 1.0F);
    std::vector<float> total(index(rows));
    Result<bool> done = sum_matrix({.order = row_sum_,
                                    .product = Product::rounded,
                                    .input = sums,
                                    .accumulator = sums,
                                    .rows = rows,
                                    .terms = keys,
                                    .columns = 1,
                                    .a = scores.data(),
                                    .a_stride = keys,
                                    .b = ones.data(),
                                    .b_stride = 1},
                                   total.data(), 1, run_.engine_of_one());
    if (!done) return done;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float l = total[index(row)];
      for (float& p : scores.subspan(index(row * keys), index(keys))) {
        p /= l;
      }
    }
    to_storage(scores);
    return true;
  }

  const Run& run_;
  const EagerRule& rule_;
  ProductSum scores_;
  ProductSum values_;
  Order row_sum_;
  ExpFunction exp_;
};

}  // namespace

Result<bool> run_eager(const Run& run, AttentionResult& result) {
  const StorageSums& sums = run.sums;
  Result<ProductSum> scores = ProductSum::parse(sums.scores, sums.product, sums.storage);
  if (!scores) return scores.error();
  Result<ProductSum> values = ProductSum::parse(sums.values, sums.product, sums.storage);
  if (!values) return values.error();
  Result<Order> row_sum = parse_order(run.kernel.eager->row_sum);
  if (!row_sum) return row_sum.error();
  const Eager eager(run, scores.value(), values.value(), row_sum.value());

  const AttentionShape& shape = run.shape();
  const std::vector<QueryTile> tiles =
      query_tiles(shape, run.problem.first_query, queries_with_all_scores(shape));
  Result<bool> done =
      run_tasks(static_cast<std::int64_t>(tiles.size()), run.options.engine.threads,
                [&](std::int64_t i) { return eager.run_tile(tiles[index(i)], result.out); });
  if (!done) return done;
  result.lse.clear();
  result.block_columns = shape.kv_len;
  result.exp_bounded = run.kernel.eager->exp == SoftmaxExp::gpu;
  return true;
}

}  // namespace kvsim::attention
