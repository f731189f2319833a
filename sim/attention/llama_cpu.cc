// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/tile_steps.h"
#include "sim/attention/vector_steps.h"
#include "sim/attention/visible_keys.h"
#include "sim/elementary.h"
#include "sim/tasks.h"
#include "softfloat/formats.h"

namespace kvsim::attention {
namespace {

constexpr std::int64_t elements_of_a_step = 32;  // 4 accumulators of 8 lanes
constexpr std::int64_t fewest_keys_to_split = 512;

/// Running maximum, sum and outputs of one row over some keys.
struct State {
  float maximum = no_score;
  float sum = 0;
  std::vector<float> o;
};

/// Element k of a row whose whole steps are permuted so that joining lanes half as far apart each
/// time is what the AVX2 code does: accumulators 2, then 1 apart, lanes 4, then 1, then 2 apart.
std::int64_t element(std::int64_t k) {
  return k / 4 * 4 + (k % 4 == 1 ? 2 : k % 4 == 2 ? 1 : k % 4);
}

/// The scores of one row.
struct RowScores {
  std::span<const float> scaled;
  std::span<const float> unscaled;  ///< for an observer; empty where there is none
};

class LlamaCpu {
 public:
  explicit LlamaCpu(const Run& run) : run_(run), level_(run.options.engine.level) {}

  Result<bool> run_tile(const QueryTile& tile, AttentionResult& result) const {
    const AttentionShape& shape = run_.shape();
    Result<std::vector<float>> scores = scores_of(tile);
    if (!scores) return scores.error();
    std::vector<float> unscaled;  // for an observer
    if (run_.observer != nullptr) unscaled = *scores;
    scale_and_cap(*scores, run_.scale, run_.problem.mask.soft_cap);
    for (std::int64_t row = 0; row < tile.count * shape.group(); ++row) {
      const std::span<const float> own =
          std::span(scores.value()).subspan(index(row * shape.kv_len), index(shape.kv_len));
      const KeyRange seen = visible_keys(shape, run_.problem.mask, run_.query_of(tile, row));
      const std::int64_t length = keys_of_chunk(run_.problem);
      AttentionPlace place{.head = tile.kv_head * shape.group() + row % shape.group(),
                           .query = run_.query_of(tile, row)};
      RowScores of_row{own, {}};
      if (run_.observer != nullptr) {
        of_row.unscaled = std::span(unscaled).subspan(index(row * shape.kv_len), own.size());
      }
      State state;
      for (std::int64_t first = 0; first < shape.kv_len; first += length) {
        const KeyRange keys = intersect(seen, {first, first + length});
        if (!keys.empty()) merge(run_keys(tile.kv_head, keys, of_row, place), state);
        ++place.split;
      }
      if (state.o.empty()) continue;  // sees no key: +0
      multiply_by(state.o, 1 / state.sum);
      place.split = 0;
      run_.show(AttentionStep::split_output, place, state.o);
      std::copy(state.o.begin(), state.o.end(),
                result.out.begin() + run_.row_of(tile, row) * shape.head_dim);
      result.lse[index(run_.row_of(tile, row))] = state.maximum + log_f32(state.sum);
    }
    return true;
  }

 private:
  /// [rows][kv_len], not scaled: whole steps of 32 elements on the engine, the rest in binary64.
  [[nodiscard]] Result<std::vector<float>> scores_of(const QueryTile& tile) const {
    const AttentionShape& shape = run_.shape();
    const std::int64_t dim = shape.head_dim;
    const std::int64_t whole = dim / elements_of_a_step * elements_of_a_step;
    const std::int64_t rows = tile.count * shape.group();
    const float* const keys = run_.keys(tile.kv_head).floats();
    const Result<ProductSum> sum =
        ProductSum::parse("lanes(32,1,join=butterfly)", Product::fused, run_.problem.storage);
    if (!sum) return sum.error();
    std::vector<float> q(index(rows * dim));
    std::vector<float> a(index(rows * whole));
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(run_.problem.q + run_.row_of(tile, row) * dim, dim, q.data() + row * dim);
      for (std::int64_t k = 0; k < whole; ++k) {
        a[index(row * whole + k)] = q[index(row * dim + element(k))];
      }
    }
    std::vector<float> b(index(whole * shape.kv_len));
    for (std::int64_t j = 0; j < shape.kv_len; ++j) {
      for (std::int64_t k = 0; k < whole; ++k) {
        b[index(k * shape.kv_len + j)] = keys[j * dim + element(k)];
      }
    }
    std::vector<float> scores(index(rows * shape.kv_len));
    Result<bool> done = sum.value().multiply({.rows = rows,
                                              .terms = whole,
                                              .columns = shape.kv_len,
                                              .a = a.data(),
                                              .a_stride = whole,
                                              .b = b.data(),
                                              .b_stride = shape.kv_len},
                                             scores.data(), shape.kv_len, run_.engine_of_one());
    if (!done) return done.error();
    for (std::int64_t row = 0; row < rows && whole < dim; ++row) {
      for (std::int64_t j = 0; j < shape.kv_len; ++j) {
        float& score = scores[index(row * shape.kv_len + j)];
        double rest = score;
        for (std::int64_t k = whole; k < dim; ++k) {
          rest += static_cast<double>(q[index(row * dim + k)] * keys[j * dim + k]);
        }
        score = static_cast<float>(rest);
      }
    }
    return scores;
  }

  /// Keys one after another.
  [[nodiscard]] State run_keys(std::int64_t kv_head, const KeyRange& keys, const RowScores& scores,
                               AttentionPlace place) const {
    const std::int64_t dim = run_.shape().head_dim;
    place.keys = 1;
    State state;
    state.o.resize(index(dim));
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      const float s = scores.scaled[index(j)];
      place.first_key = j;
      if (run_.observer != nullptr) show_scores(place, scores.unscaled[index(j)], s);
      float rescale = 1;
      float weight = 1;
      if (s > state.maximum) {
        rescale = exp_f32(state.maximum - s);
        state.maximum = s;
        multiply_by(state.o, rescale);
        round_to_storage(state.o);
        run_.show(AttentionStep::rescaled_output, place, state.o);
      } else {
        weight = exp_f32(s - state.maximum);
      }
      multiply_add({run_.values(kv_head).floats() + j * dim, index(dim)}, weight, state.o, level_);
      round_to_storage(state.o);
      state.sum = std::fma(state.sum, rescale, weight);
      if (run_.observer != nullptr) show_key(place, s, rescale, weight, state);
    }
    return state;
  }

  void show_scores(const AttentionPlace& place, float score, float scaled) const {
    run_.show(AttentionStep::scores, place, {&score, 1});
    run_.show(AttentionStep::scaled_scores, place, {&scaled, 1});
  }

  /// What one key made of the state.
  void show_key(const AttentionPlace& place, float scaled, float rescale, float weight,
                const State& state) const {
    const float exponent = scaled - state.maximum;
    run_.show(AttentionStep::maximum, place, {&state.maximum, 1});
    run_.show(AttentionStep::rescale, place, {&rescale, 1});
    run_.show(AttentionStep::exponents, place, {&exponent, 1});
    run_.show(AttentionStep::exponentials, place, {&weight, 1});
    run_.show(AttentionStep::row_sum, place, {&state.sum, 1});
    run_.show(AttentionStep::probabilities, place, {&weight, 1});
    run_.show(AttentionStep::output, place, state.o);
  }

  /// The next chunk's state is joined to those before it.
  void merge(State next, State& all) const {
    if (all.o.empty()) {
      all = std::move(next);
      return;
    }
    float before = 1;
    float here = 1;
    if (next.maximum > all.maximum) {
      before = exp_f32(all.maximum - next.maximum);
      all.maximum = next.maximum;
    } else {
      here = exp_f32(next.maximum - all.maximum);
    }
    multiply_by(next.o, here);
    multiply_add(all.o, before, next.o, level_);
    all.o.swap(next.o);
    all.sum = std::fma(all.sum, before, next.sum * here);
  }

  void round_to_storage(std::span<float> values) const {
    static_cast<void>(round_values(run_.problem.storage, values, values, level_));
  }

  const Run& run_;
  SimdLevel level_;
};

}  // namespace

std::int64_t keys_of_chunk(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  if (shape.query_len > 1 || shape.kv_len < fewest_keys_to_split) return shape.kv_len;
  return (shape.kv_len + problem.launch.cpu_threads - 1) / problem.launch.cpu_threads;
}

Result<bool> check_llama_cpu(const AttentionKernel& kernel, const AttentionProblem& problem) {
  constexpr std::int64_t most_cpu_threads = 1024;
  if (problem.launch.cpu_threads <= most_cpu_threads) return true;
  return Error{ErrorKind::usage,
               fmt::format("kernel {} with cpu_threads {}: accepted are 1 to {}", kernel.name,
                           problem.launch.cpu_threads, most_cpu_threads)};
}

Result<bool> run_llama_cpu(const Run& run, AttentionResult& result) {
  const AttentionShape& shape = run.shape();
  const std::vector<QueryTile> tiles =
      query_tiles(shape, run.problem.first_query, queries_with_all_scores(shape));
  const LlamaCpu llama(run);
  Result<bool> done =
      run_tasks(static_cast<std::int64_t>(tiles.size()), run.options.engine.threads,
                [&](std::int64_t i) { return llama.run_tile(tiles[index(i)], result); });
  if (!done) return done;
  result.splits = (shape.kv_len + keys_of_chunk(run.problem) - 1) / keys_of_chunk(run.problem);
  result.block_columns = shape.kv_len;
  return true;
}

}  // namespace kvsim::attention
