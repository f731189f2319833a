// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/tile_steps.h"
#include "sim/attention/torch_cpu_rules.h"
#include "sim/attention/vector_steps.h"
#include "sim/attention/visible_keys.h"
#include "sim/elementary.h"
#include "sim/linear.h"
#include "sim/tasks.h"
#include "softfloat/formats.h"

namespace kvsim::attention {
namespace {

constexpr std::size_t most_lanes = 16;

using torch_cpu::in_fours;
using torch_cpu::in_passes;
using torch_cpu::keys_of_a_block;
using torch_cpu::pass_length;

/// o += p·v, key by key.
void add_one_by_one(std::span<const float> p, const float* v, std::span<float> o) {
  for (const float factor : p) {
    for (float& sum : o) sum += factor * *v++;
  }
}

/// o += p·v: the products of four keys are summed first, key i with key i + 2; the keys that are
/// left over follow one by one, the last one first.
void add_in_fours(std::span<const float> p, const float* v, std::span<float> o) {
  const std::size_t dim = o.size();
  const std::size_t whole = p.size() / 4 * 4;
  const auto product = [&](std::size_t key, std::size_t d) { return p[key] * v[key * dim + d]; };
  for (std::size_t j = 0; j < whole; j += 4) {
    for (std::size_t d = 0; d < dim; ++d) {
      o[d] += (product(j, d) + product(j + 2, d)) + (product(j + 1, d) + product(j + 3, d));
    }
  }
  for (std::size_t j = p.size(); j > whole; --j) {
    for (std::size_t d = 0; d < dim; ++d) o[d] += product(j - 1, d);
  }
}

class TorchCpu {
 public:
  TorchCpu(const Run& run, const LinearKernel& scores)
      : run_(run),
        rule_(*run.kernel.torch_cpu),
        scores_(scores),
        tail_exp_(rule_.tail_exp),
        rescale_exp_(rule_.rescale_exp),
        vector_exp_(run.problem.storage == softfloat::binary32 ? ExpModel::torch_exp_u20
                                                               : ExpModel::torch_fexp_u20),
        level_(run.options.engine.level) {}

  Result<bool> run_tile(const QueryTile& tile, AttentionResult& result) const;

 private:
  struct State {
    std::int64_t rows = 0;
    std::vector<float> q, o, p, maximum, sum, part;
    std::vector<char> started;
  };

  Result<bool> multiply_scores(const QueryTile& tile, const KeyRange& block, State& state) const;
  Result<bool> run_block(const QueryTile& tile, const KeyRange& block, State& state) const;
  void softmax_row(std::int64_t row, const AttentionPlace& place, const KeyRange& seen,
                   std::span<float> p, State& state) const;
  [[nodiscard]] float exponentials(std::span<float> x) const;
  [[nodiscard]] AttentionPlace place_of(const QueryTile& tile, std::int64_t row,
                                        const KeyRange& block) const {
    const std::int64_t group = run_.shape().group();
    return {.head = tile.kv_head * group + row % group,
            .query = run_.query_of(tile, row),
            .first_key = block.begin,
            .keys = block.size()};
  }
  /// Tells the observer what a block gave: of every row that is computed, the same count of
  /// numbers.
  void show_rows(AttentionStep step, const QueryTile& tile, const KeyRange& block,
                 std::span<const float> numbers) const;
  Result<bool> add_values(const QueryTile& tile, const KeyRange& block, State& state) const;

  const Run& run_;
  const TorchCpuRule& rule_;
  const LinearKernel& scores_;
  ExpFunction tail_exp_;
  ExpFunction rescale_exp_;
  ExpFunction vector_exp_;
  SimdLevel level_;
};

Result<bool> TorchCpu::run_tile(const QueryTile& tile, AttentionResult& result) const {
  const AttentionShape& shape = run_.shape();
  const std::int64_t dim = shape.head_dim;
  State state;
  state.rows = tile.count * shape.group();
  state.q.resize(index(state.rows * dim));
  state.o.resize(index(state.rows * dim));
  state.part.resize(index(state.rows * dim));
  state.p.resize(index(state.rows * keys_of_a_block));
  state.maximum.assign(index(state.rows), no_score);
  state.sum.resize(index(state.rows));
  state.started.resize(index(state.rows));
  // Queries that are not computed are zeros, and their results are dropped.
  const std::int64_t skipped =
      std::max<std::int64_t>(0, run_.problem.first_query - tile.first) * shape.group();
  for (std::int64_t row = skipped; row < state.rows; ++row) {
    std::copy_n(run_.problem.q + run_.row_of(tile, row) * dim, dim, state.q.data() + row * dim);
  }
  const KeyRange first = visible_keys(shape, run_.problem.mask, tile.first);
  const KeyRange last = visible_keys(shape, run_.problem.mask, tile.first + tile.count - 1);
  for (std::int64_t begin = 0; begin < shape.kv_len; begin += keys_of_a_block) {
    const KeyRange block{begin, std::min(begin + keys_of_a_block, shape.kv_len)};
    if (block.end <= first.begin || block.begin >= last.end) continue;
    Result<bool> done = run_block(tile, block, state);
    if (!done) return done;
  }
  for (std::int64_t row = skipped; row < state.rows; ++row) {
    if (state.started[index(row)] == 0) continue;
    const std::span<float> o(state.o.data() + row * dim, index(dim));
    multiply_by(o, 1 / state.sum[index(row)]);
    run_.show(AttentionStep::split_output, place_of(tile, row, {}), o);
    static_cast<void>(round_values(run_.problem.storage, o, o, level_));
    const std::int64_t to = run_.row_of(tile, row);
    std::copy(o.begin(), o.end(), result.out.begin() + to * dim);
    result.lse[index(to)] = state.maximum[index(row)] + log_f32(state.sum[index(row)]);
  }
  return true;
}

/// q·k of a block into state.p: a matrix product of its own for each head.
Result<bool> TorchCpu::multiply_scores(const QueryTile& tile, const KeyRange& block,
                                       State& state) const {
  const std::int64_t dim = run_.shape().head_dim;
  const std::int64_t keys = block.size();
  // Heads differ in what kernels make of their shape only where rows and outputs may change places.
  const std::int64_t group = keys == 1 ? run_.shape().group() : 1;
  for (std::int64_t head = 0; head < group; ++head) {
    const Result<bool> done =
        apply_linear(scores_,
                     {.rows = state.rows / group,
                      .outputs = keys,
                      .terms = dim,
                      .storage = run_.problem.storage,
                      .launch_rows = tile.count,
                      .x = state.q.data() + head * dim,
                      .x_stride = group * dim,
                      .w = run_.keys(tile.kv_head) + block.begin * dim,
                      .w_stride = dim,
                      .w_by_outputs = true,
                      .output = softfloat::binary32},
                     state.p.data() + head * keys, group * keys, run_.engine_of_one());
    if (!done) return done;
  }
  return true;
}

void TorchCpu::show_rows(AttentionStep step, const QueryTile& tile, const KeyRange& block,
                         std::span<const float> numbers) const {
  if (run_.observer == nullptr) return;
  const std::int64_t rows = tile.count * run_.shape().group();
  const std::size_t of_row = numbers.size() / index(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    if (run_.query_of(tile, row) < run_.problem.first_query) continue;
    run_.show(step, place_of(tile, row, block), numbers.subspan(index(row) * of_row, of_row));
  }
}

Result<bool> TorchCpu::run_block(const QueryTile& tile, const KeyRange& block, State& state) const {
  const AttentionShape& shape = run_.shape();
  const std::int64_t keys = block.size();
  Result<bool> done = multiply_scores(tile, block, state);
  if (!done) return done;
  for (std::int64_t row = 0; row < state.rows; ++row) {
    const KeyRange seen =
        intersect(visible_keys(shape, run_.problem.mask, run_.query_of(tile, row)), block);
    softmax_row(row, place_of(tile, row, block), {seen.begin - block.begin, seen.end - block.begin},
                std::span(state.p).subspan(index(row * keys), index(keys)), state);
  }
  const auto p = std::span(state.p).first(index(state.rows * keys));
  static_cast<void>(round_values(run_.problem.storage, p, p, level_));
  show_rows(AttentionStep::probabilities, tile, block, p);
  done = add_values(tile, block, state);
  if (done) show_rows(AttentionStep::output, tile, block, state.o);
  return done;
}

void TorchCpu::softmax_row(std::int64_t row, const AttentionPlace& place, const KeyRange& seen,
                           std::span<float> p, State& state) const {
  const auto show = [&](AttentionStep step, std::span<const float> numbers) {
    if (place.query >= run_.problem.first_query) run_.show(step, place, numbers);
  };
  show(AttentionStep::scores, p);
  scale_and_cap(p, run_.scale, run_.problem.mask.soft_cap);
  for (std::size_t j = 0; j < p.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    if (key < seen.begin || key >= seen.end) p[j] = no_score;
  }
  show(AttentionStep::scaled_scores, p);
  float& maximum = state.maximum[index(row)];
  const float before = maximum;
  for (const float s : p) maximum = s > maximum ? s : maximum;
  if (maximum == no_score) {
    std::ranges::fill(p, 0.0F);  // no score but −∞ so far: no exponential of −∞ − (−∞)
    return;
  }
  show(AttentionStep::maximum, {&maximum, 1});
  for (float& s : p) s -= maximum;
  const float r = rescale_exp_.exp(before - maximum);
  show(AttentionStep::rescale, {&r, 1});
  show(AttentionStep::exponents, p);
  const float block_sum = exponentials(p);
  show(AttentionStep::exponentials, p);
  float& sum = state.sum[index(row)];
  sum = std::fma(r, sum, block_sum);
  show(AttentionStep::row_sum, {&sum, 1});
  if (state.started[index(row)] != 0) {
    const std::int64_t dim = run_.shape().head_dim;
    const std::span<float> o = std::span(state.o).subspan(index(row * dim), index(dim));
    multiply_by(o, r);
    show(AttentionStep::rescaled_output, o);
  }
  state.started[index(row)] = 1;
}

/// x becomes e^x, by the vector function where a whole vector stands; the sum of them.
float TorchCpu::exponentials(std::span<float> x) const {
  const auto width = static_cast<std::size_t>(rule_.lanes);
  const std::size_t whole = x.size() / width * width;
  vector_exp_.exp(x.first(whole), x.first(whole), level_);
  std::array<float, most_lanes> lanes{};
  for (std::size_t j = 0; j < whole; ++j) lanes[j % width] += x[j];
  for (std::size_t half = width / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  float sum = lanes[0];
  const std::span<float> tail = x.subspan(whole);
  tail_exp_.exp(tail, tail, level_);
  for (const float e : tail) sum += e;
  return sum;
}

/// O += P·v, with the sums of each pass added in turn.
Result<bool> TorchCpu::add_values(const QueryTile& tile, const KeyRange& block,
                                  State& state) const {
  const std::int64_t dim = run_.shape().head_dim;
  const std::int64_t keys = block.size();
  const float* const v = run_.values(tile.kv_head).floats() + block.begin * dim;
  if (!in_passes(tile.count, dim)) {
    const bool fours = in_fours(tile.count, run_.problem.storage);
    for (std::int64_t row = 0; row < state.rows; ++row) {
      const std::span<float> o(state.o.data() + row * dim, index(dim));
      const std::span<const float> p(state.p.data() + row * keys, index(keys));
      fours ? add_in_fours(p, v, o) : add_one_by_one(p, v, o);
    }
    return true;
  }
  const Result<ProductSum> values =
      ProductSum::parse("sequential", Product::fused, run_.problem.storage);
  if (!values) return values.error();
  const std::int64_t length = pass_length(keys);
  for (std::int64_t first = 0; first < keys; first += length) {
    Result<bool> done = values.value().multiply({.rows = state.rows,
                                                 .terms = std::min(length, keys - first),
                                                 .columns = dim,
                                                 .a = state.p.data() + first,
                                                 .a_stride = keys,
                                                 .b = v + first * dim,
                                                 .b_stride = dim},
                                                state.part.data(), dim, run_.engine_of_one());
    if (!done) return done;
    add_into(state.o, state.part);
  }
  return true;
}

}  // namespace

Result<bool> run_torch_cpu(const Run& run, AttentionResult& result) {
  const AttentionShape& shape = run.shape();
  const std::int64_t queries = torch_cpu::queries_of_a_block(shape.query_len);
  // Whole tiles: how many queries one has decides its sums.
  const std::int64_t first = run.problem.first_query / queries * queries;
  const std::vector<QueryTile> tiles = query_tiles(shape, first, queries);
  const LinearKernel* const scores = find_linear_kernel(run.kernel.torch_cpu->scores_kernel);
  if (scores == nullptr) {
    return Error{ErrorKind::usage,
                 fmt::format("linear kernel {}: unknown", run.kernel.torch_cpu->scores_kernel)};
  }
  const TorchCpu torch(run, *scores);
  Result<bool> done =
      run_tasks(static_cast<std::int64_t>(tiles.size()), run.options.engine.threads,
                [&](std::int64_t i) { return torch.run_tile(tiles[index(i)], result); });
  if (!done) return done;
  result.block_columns = keys_of_a_block;
  return true;
}

}  // namespace kvsim::attention
