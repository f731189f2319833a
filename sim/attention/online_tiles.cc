// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/online_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/attention/merge.h"
#include "sim/attention/vector_steps.h"
#include "sim/elementary.h"
#include "sim/parallel.h"
#include "sim/tasks.h"

namespace kvsim::attention {
namespace {

constexpr std::int64_t rows_of_a_tile = 128;  // changes no bit: rows are independent

constexpr std::int64_t few_rows = 16;  // of a tile whose blocks are scored together

/// Blocks that are scored at once: so many that their keys, and their values, leave room in the
/// second cache.
std::int64_t blocks_at_once(std::int64_t block_columns, std::int64_t bytes_of_key) {
  constexpr std::int64_t bytes_at_once = 1 << 16;
  return std::max<std::int64_t>(1, bytes_at_once / (block_columns * bytes_of_key));
}

std::span<const std::byte> bytes_of(NumberPointer numbers, std::int64_t count) {
  return {static_cast<const std::byte*>(numbers.data()), index(count * numbers.bytes())};
}

}  // namespace

Result<bool> OnlineTiles::run_tile(const TileTask& task, const SplitStore& store) const {
  const AttentionShape& shape = run_.shape();
  const std::int64_t rows = task.count;
  State state(rows, shape.head_dim, plan_.block_columns, rule_.first_maximum);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(run_.problem.q + row_of(task, row) * shape.head_dim, shape.head_dim,
                state.q.data() + row * shape.head_dim);
  }
  if (operand_ != run_.problem.storage) round_to(operand_, state.q);
  if (exponents_.natural()) {
    const float factor = rounded_to_half(exponents_.query_factor);
    for (float& x : state.q) x *= factor;
    round_to(operand_, state.q);
  }
  const std::int64_t blocks = (task.keys.size() + plan_.block_columns - 1) / plan_.block_columns;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t number = rule_.last_to_first ? blocks - 1 - i : i;
    const std::int64_t begin = task.keys.begin + number * plan_.block_columns;
    // What is scored next and not yet in the cache, as far as the split has it.
    const std::int64_t step =
        (rows > few_rows ? 1 : blocks_at_once(plan_.block_columns, bytes_of_key(task))) *
        plan_.block_columns;
    const std::int64_t after = rule_.last_to_first ? begin - step : begin + step;
    Result<bool> done = run_block(task, block_from(task, begin), block_from(task, after), state);
    if (!done) return done;
  }
  finish(task, state, store);
  return true;
}

/// The scores of a block. With few rows those of several blocks are computed at once: preparing the
/// queries then counts.
Result<bool> OnlineTiles::add_scores(const TileTask& task, const RowRange& rows,
                                     const KeyRange& block, State& state) const {
  const AttentionShape& shape = run_.shape();
  const std::int64_t columns = plan_.block_columns;
  float* const p = state.p.data() + rows.first * columns;
  Factors factors{.rows = rows.count,
                  .terms = shape.head_dim,
                  .a = state.q.data() + rows.first * shape.head_dim,
                  .a_stride = shape.head_dim,
                  .b_stride = shape.head_dim,
                  .b_transposed = true};
  const auto multiply = [&](const KeyRange& range, float* out, std::int64_t out_stride) {
    const std::int64_t numbers = range.size() * shape.head_dim;
    factors.columns = range.size();
    factors.b = keys(task.kv_head) + range.begin * shape.head_dim;
    factors.read_next = bytes_of(values(task.kv_head) + range.begin * shape.head_dim, numbers);
    return scores_.multiply(factors, out, out_stride, run_.engine_of_one());
  };
  if (task.count > few_rows) return multiply(block, p, columns);

  if (block.begin < state.scored.begin || block.end > state.scored.end) {
    const std::int64_t others = blocks_at_once(columns, bytes_of_key(task)) * columns - columns;
    const KeyRange range = rule_.last_to_first ? KeyRange{block.begin - others, block.end}
                                               : KeyRange{block.begin, block.end + others};
    state.scored = intersect(range, task.keys);
    factors.rows = task.count;
    factors.a = state.q.data();
    state.scores.resize(index(task.count * state.scored.size()));
    Result<bool> done = multiply(state.scored, state.scores.data(), state.scored.size());
    if (!done) return done;
  }
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const float* const from = state.scores.data() + (rows.first + row) * state.scored.size() +
                              block.begin - state.scored.begin;
    std::copy_n(from, block.size(), p + row * columns);
  }
  return true;
}

Result<bool> OnlineTiles::run_block(const TileTask& task, const KeyRange& block,
                                    const KeyRange& next, State& state) const {
  const AttentionShape& shape = run_.shape();
  // The rows that see a key of the block stand together, because both ends of what they see grow.
  std::int64_t first_row = 0;
  while (first_row < task.count && seen_by(task, first_row).end <= block.begin) ++first_row;
  std::int64_t last_row = task.count;
  while (last_row > first_row && seen_by(task, last_row - 1).begin >= block.end) --last_row;
  if (first_row == last_row) return true;
  const std::int64_t rows = last_row - first_row;
  const std::int64_t columns = plan_.block_columns;
  float* const p = state.p.data() + first_row * columns;
  float* const o = state.o.data() + first_row * shape.head_dim;
  const NumberPointer v = values(task.kv_head) + block.begin * shape.head_dim;
  Result<bool> done = add_scores(task, {first_row, rows}, block, state);
  if (!done) return done;
  const RowRange range{first_row, rows};
  show(AttentionStep::scores, task, range, block, state.p);
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const KeyRange seen = intersect(seen_by(task, row), block);
    softmax_row(row, {seen.begin - block.begin, seen.end - block.begin}, place_of(task, row, seen),
                state);
  }
  const std::span<float> block_p(p, index(rows * columns));
  round_to(operand_, block_p);
  show(AttentionStep::probabilities, task, range, block, state.p);
  if (rule_.row_sum == RowSumRule::unit) {
    done = add_unit_row_sum(first_row, rows, has_finite_mask() ? columns : block.size(), state);
    if (!done) return done;
    show(AttentionStep::row_sum, task, range, block, state.sums);
  }
  const NumberPointer next_keys = keys(task.kv_head) + next.begin * shape.head_dim;
  done = values_.multiply({.rows = rows,
                           .terms = block.size(),
                           .columns = shape.head_dim,
                           .a = p,
                           .a_stride = columns,
                           .b = v,
                           .b_stride = shape.head_dim,
                           .c = o,
                           .c_stride = shape.head_dim,
                           .read_next = bytes_of(next_keys, next.size() * shape.head_dim)},
                          o, shape.head_dim, run_.engine_of_one());
  show(AttentionStep::output, task, range, block, state.o);
  return done;
}

void OnlineTiles::show(AttentionStep step, const TileTask& task, const RowRange& rows,
                       const KeyRange& keys, std::span<const float> numbers) const {
  if (run_.observer == nullptr) return;
  const std::int64_t of_row = static_cast<std::int64_t>(numbers.size()) / task.count;
  const bool by_key = step == AttentionStep::scores || step == AttentionStep::probabilities;
  for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    run_.show(step, place_of(task, row, keys),
              numbers.subspan(index(row * of_row), index(by_key ? keys.size() : of_row)));
  }
}

/// The row sum as one more column of the product P·V, of ones.
Result<bool> OnlineTiles::add_unit_row_sum(std::int64_t first, std::int64_t rows, std::int64_t keys,
                                           State& state) const {
  const std::vector<float> ones(index(keys), 1.0F);
  float* const sums = state.sums.data() + first * row_sum_parts;
  for (std::int64_t i = 0; i < rows; ++i) {
    sums[i * row_sum_parts] *= state.rescale[index(first + i)];
  }
  return values_.multiply({.rows = rows,
                           .terms = keys,
                           .columns = 1,
                           .a = state.p.data() + first * plan_.block_columns,
                           .a_stride = plan_.block_columns,
                           .b = ones.data(),
                           .b_stride = 1,
                           .c = sums,
                           .c_stride = row_sum_parts},
                          sums, row_sum_parts, run_.engine_of_one());
}

void OnlineTiles::finish(const TileTask& task, State& state, const SplitStore& store) const {
  const std::int64_t head_dim = run_.shape().head_dim;
  const bool states = plan_.splits > 1 && rule_.merge == SplitMerge::serial_states;
  for (std::int64_t row = 0; row < task.count; ++row) {
    if (state.started[index(row)] == 0) continue;  // +0 and −∞ stay
    const float sum = finish_row_sum(
        rule_.row_sum, std::span(state.sums).subspan(index(row * row_sum_parts), row_sum_parts));
    const float maximum = state.maximum[index(row)];
    const bool unrisen = has_finite_mask() && maximum == rule_.first_maximum;
    const std::int64_t to = row_of(task, row);
    const std::span<float> o(state.o.data() + row * head_dim, index(head_dim));
    if (rule_.divides) {
      for (float& x : o) x /= sum;
    } else {
      const float inverse = unrisen ? 0.0F : sum == 0 || std::isnan(sum) ? 1.0F : 1 / sum;
      for (float& x : o) x *= inverse;
    }
    float& log_sum = store.log_sums[index(to)];
    if (unrisen) {
      log_sum = exponents_.unscaled_log_sum(maximum, sum, states);
    } else if (rule_.nan_sum_is_empty && std::isnan(sum)) {
      log_sum = no_score;
    } else {
      log_sum = states ? std::fma(maximum, exponents_.scale_log2, log2_f32(sum))
                       : exponents_.log_sum(rule_.log_sum, maximum, sum);
    }
    const AttentionPlace place = place_of(task, row, task.keys);
    run_.show(AttentionStep::split_output, place, o);
    run_.show(AttentionStep::log_sum, place, {&log_sum, 1});
    if (plan_.splits == 1 && !rule_.output_in_binary32) round_to(run_.problem.storage, o);
    std::copy(o.begin(), o.end(), store.outputs.data() + to * head_dim);
  }
}

Result<bool> run_online_tiles(const Run& run, AttentionResult& result) {
  const StorageSums& sums = run.sums;
  Result<ProductSum> scores = ProductSum::parse(sums.scores, sums.product, sums.storage);
  if (!scores) return scores.error();
  Result<ProductSum> values = ProductSum::parse(sums.values, sums.product, sums.storage);
  if (!values) return values.error();
  const AttentionShape& shape = run.shape();
  const SplitPlan plan = plan_splits(run.kernel, shape, run.problem.mask, run.problem.launch);
  const OnlineTiles tiles(run, plan, scores.value(), values.value());

  const std::int64_t share = plan.tile_rows > 0 ? plan.block_columns : plan.size;
  const std::int64_t splits =
      std::min(plan.splits, (shape.kv_len + share - 1) / share);  // the others are empty
  const std::int64_t rows_of_a_task = plan.tile_rows > 0 ? plan.tile_rows : rows_of_a_tile;
  const std::int64_t group_rows = shape.query_len * shape.group();
  std::vector<TileTask> tasks;
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int64_t row = 0; row < group_rows; row += rows_of_a_task) {
      const std::int64_t end = std::min(row + rows_of_a_task, group_rows);
      const std::int64_t first = std::max(row, run.problem.first_query * shape.group());
      if (first >= end) continue;
      for (std::int64_t s = 0; s < splits; ++s) {
        const KeyRange keys = split_keys(plan, shape, run.problem.mask, row / rows_of_a_task, s);
        if (keys.empty()) continue;
        tasks.push_back({head, first, end - first, s, keys});
      }
    }
  }
  const std::size_t outputs = result.out.size();
  const std::size_t rows = result.lse.size();
  const bool merges = plan.splits > 1;
  if (merges && static_cast<std::int64_t>(outputs) > most_working_numbers / splits) {
    return Error{ErrorKind::usage,
                 fmt::format("{} outputs of {} splits: at most {} numbers are accepted", outputs,
                             splits, most_working_numbers)};
  }
  std::vector<float> split_outputs(merges ? outputs * index(splits) : 0);
  std::vector<float> split_log_sums(merges ? rows * index(splits) : 0, no_score);
  Result<bool> done = run_tasks(
      static_cast<std::int64_t>(tasks.size()), run.options.engine.threads, [&](std::int64_t i) {
        const TileTask& task = tasks[index(i)];
        if (!merges) return tiles.run_tile(task, {result.out, result.lse});
        const auto s = index(task.split);
        return tiles.run_tile(task, {std::span(split_outputs).subspan(s * outputs, outputs),
                                     std::span(split_log_sums).subspan(s * rows, rows)});
      });
  if (!done) return done;
  if (merges) {
    const SplitMerge merge = run.kernel.tiles->merge;
    const bool base_2 =
        merge == SplitMerge::serial_states || merge == SplitMerge::base2_normalized_weights;
    const ExpFunction merge_exp = base_2 ? gpu_exp2(run) : gpu_exp_base_e(run, true);
    // A table of ex2 does not settle CUDA's expf, which merges in base e go through.
    result.exp_bounded = !base_2;
    parallel_for(static_cast<std::int64_t>(rows), run.options.engine.threads, [&](std::int64_t i) {
      std::vector<float> log_sums(index(splits));
      for (std::size_t s = 0; s < log_sums.size(); ++s) {
        log_sums[s] = split_log_sums[s * rows + index(i)];
      }
      const std::span<float> out =
          std::span(result.out).subspan(index(i * shape.head_dim), index(shape.head_dim));
      result.lse[index(i)] = merge_splits(merge,
                                          {.splits = plan.splits,
                                           .log_sums = log_sums,
                                           .outputs = split_outputs.data() + i * shape.head_dim,
                                           .stride = static_cast<std::int64_t>(outputs),
                                           .head_dim = shape.head_dim,
                                           .level = run.options.engine.level},
                                          merge_exp, out);
      const std::int64_t queries = shape.query_len - run.problem.first_query;
      run.show(AttentionStep::merged_output,
               {.head = i / queries,
                .query = run.problem.first_query + i % queries,
                .keys = shape.kv_len},
               out);
      static_cast<void>(round_values(run.problem.storage, out, out, run.options.engine.level));
    });
  }
  result.splits = plan.splits;
  result.block_columns = plan.block_columns;
  result.exp_bounded |= gpu_exp2(run).bounded();
  return true;
}

}  // namespace kvsim::attention
