// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/visible_keys.h"
#include "sim/elementary.h"
#include "sim/linear.h"
#include "sim/operators/softmax.h"
#include "sim/tasks.h"

namespace kvsim::attention {
namespace {

using softfloat::Format;

/// What a rule names of other tables instead of orders.
struct NamedKernels {
  const LinearKernel* scores = nullptr;
  const LinearKernel* values = nullptr;
  const SoftmaxKernel* softmax = nullptr;
};

/// How the sums of a rule come about: by orders, or by kernels of other tables.
struct EagerSums {
  ProductSum scores;
  ProductSum values;
  Order row;
  NamedKernels kernels;
};

class Eager {
 public:
  Eager(const Run& run, EagerSums sums)
      : run_(run),
        rule_(*run.kernel.eager),
        sums_(std::move(sums)),
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
      show(AttentionStep::scaled_query, tile, q);
      show_to_all(AttentionStep::scaled_keys, tile, k_scaled);
    }
    std::vector<float> p(index(rows * shape.kv_len));
    Result<bool> done = multiply(sums_.scores, sums_.kernels.scores,
                                 {.rows = rows,
                                  .terms = shape.head_dim,
                                  .columns = shape.kv_len,
                                  .a = q.data(),
                                  .a_stride = shape.head_dim,
                                  .b = k,
                                  .b_stride = shape.head_dim,
                                  .b_transposed = true},
                                 p);
    if (!done) return done;
    show(AttentionStep::scores, tile, p);
    to_storage(p);
    show(AttentionStep::stored_scores, tile, p);
    finish_scores(tile, p);
    show(AttentionStep::scaled_scores, tile, p);
    done = softmax(tile, p);
    if (!done) return done;
    std::vector<float> o(index(rows * shape.head_dim));
    done = multiply(sums_.values, sums_.kernels.values,
                    {.rows = rows,
                     .terms = shape.kv_len,
                     .columns = shape.head_dim,
                     .a = p.data(),
                     .a_stride = shape.kv_len,
                     .b = run_.values(tile.kv_head),
                     .b_stride = shape.head_dim},
                    o);
    if (!done) return done;
    show(AttentionStep::output, tile, o);
    to_storage(o);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(o.data() + row * shape.head_dim, shape.head_dim,
                  out.data() + run_.row_of(tile, row) * shape.head_dim);
    }
    return true;
  }

 private:
  /// Tells the observer the numbers of every row: [rows][numbers of a row].
  void show(AttentionStep step, const QueryTile& tile, std::span<const float> numbers) const {
    if (run_.observer == nullptr) return;
    const AttentionShape& shape = run_.shape();
    const std::int64_t rows = tile.count * shape.group();
    const std::size_t of_row = numbers.size() / index(rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      run_.show(step, place_of(tile, row), numbers.subspan(index(row) * of_row, of_row));
    }
  }

  /// Tells the observer, for every row, what all rows share.
  void show_to_all(AttentionStep step, const QueryTile& tile,
                   std::span<const float> numbers) const {
    if (run_.observer == nullptr) return;
    for (std::int64_t row = 0; row < tile.count * run_.shape().group(); ++row) {
      run_.show(step, place_of(tile, row), numbers);
    }
  }
  [[nodiscard]] AttentionPlace place_of(const QueryTile& tile, std::int64_t row) const {
    const AttentionShape& shape = run_.shape();
    return {.head = tile.kv_head * shape.group() + row % shape.group(),
            .query = run_.query_of(tile, row),
            .keys = shape.kv_len};
  }

  void to_storage(std::span<float> values) const {
    static_cast<void>(
        round_values(run_.problem.storage, values, values, run_.options.engine.level));
  }

  /// A product in the order of the rule, or by a kernel that is chosen for all queries of a head.
  Result<bool> multiply(const ProductSum& sum, const LinearKernel* kernel, const Factors& factors,
                        std::span<float> out) const {
    if (kernel == nullptr) {
      return sum.multiply(factors, out.data(), factors.columns, run_.engine_of_one());
    }
    return apply_linear(*kernel,
                        {.rows = factors.rows,
                         .outputs = factors.columns,
                         .terms = factors.terms,
                         .storage = run_.problem.storage,
                         .launch_rows = run_.shape().query_len,
                         .x = factors.a,
                         .x_stride = factors.a_stride,
                         .w = factors.b,
                         .w_stride = factors.b_stride,
                         .w_by_outputs = factors.b_transposed,
                         .batch = run_.problem.launch.batch * run_.shape().query_heads},
                        out.data(), factors.columns, run_.engine_of_one());
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
  Result<bool> softmax(const QueryTile& tile, std::span<float> scores) const {
    const std::int64_t rows = tile.count * run_.shape().group();
    const std::int64_t keys = run_.shape().kv_len;
    if (sums_.kernels.softmax != nullptr) {
      Result<bool> done = apply_softmax(
          *sums_.kernels.softmax,
          {.storage = run_.problem.storage, .rows = rows, .columns = keys, .x = scores.data()},
          scores.data(), run_.engine_of_one());
      if (done) show(AttentionStep::probabilities, tile, scores);
      return done;
    }
    const auto step = [&](std::span<float> values) {
      if (rule_.softmax_in_storage) to_storage(values);
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::span<float> s = scores.subspan(index(row * keys), index(keys));
      const float largest = *std::max_element(s.begin(), s.end());
      for (float& x : s) x -= largest;
    }
    step(scores);
    show(AttentionStep::exponents, tile, scores);
    exp_.exp(scores, scores, run_.options.engine.level);
    step(scores);
    show(AttentionStep::exponentials, tile, scores);
    const Format& sums = rule_.softmax_in_storage ? run_.problem.storage : softfloat::binary32;
    const std::vector<float> ones(index(keys), 1.0F);
    std::vector<float> total(index(rows));
    Result<bool> done = sum_matrix({.order = sums_.row,
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
    show(AttentionStep::row_sum, tile, total);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float l = total[index(row)];
      for (float& p : scores.subspan(index(row * keys), index(keys))) {
        p /= l;
      }
    }
    to_storage(scores);
    show(AttentionStep::probabilities, tile, scores);
    return true;
  }

  const Run& run_;
  const EagerRule& rule_;
  EagerSums sums_;
  ExpFunction exp_;
};

Result<EagerSums> sums_by_orders(const Run& run) {
  const StorageSums& sums = run.sums;
  Result<ProductSum> scores = ProductSum::parse(sums.scores, sums.product, sums.storage);
  if (!scores) return scores.error();
  Result<ProductSum> values = ProductSum::parse(sums.values, sums.product, sums.storage);
  if (!values) return values.error();
  Result<Order> row = parse_order(run.kernel.eager->row_sum);
  if (!row) return row.error();
  return EagerSums{std::move(*scores), std::move(*values), std::move(*row), {}};
}

Result<EagerSums> sums_by_kernels(const Run& run) {
  const EagerRule& rule = *run.kernel.eager;
  const NamedKernels kernels{find_linear_kernel(rule.scores_kernel),
                             find_linear_kernel(rule.values_kernel),
                             find_softmax_kernel(rule.softmax_kernel)};
  if (kernels.scores == nullptr || kernels.values == nullptr || kernels.softmax == nullptr) {
    return Error{ErrorKind::usage,
                 fmt::format("attention kernel {}: {}, {} or {} is no kernel", run.kernel.name,
                             rule.scores_kernel, rule.values_kernel, rule.softmax_kernel)};
  }
  return EagerSums{{}, {}, {}, kernels};
}

}  // namespace

Result<bool> run_eager(const Run& run, AttentionResult& result) {
  Result<EagerSums> sums =
      run.kernel.eager->scores_kernel.empty() ? sums_by_orders(run) : sums_by_kernels(run);
  if (!sums) return sums.error();
  const Eager eager(run, std::move(*sums));

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
