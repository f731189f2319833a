// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/product_sum.h"
#include "sim/attention/row_steps.h"
#include "sim/attention/splits.h"
#include "sim/attention/tile_steps.h"
#include "sim/attention/visible_keys.h"
#include "sim/engine/columns.h"
#include "sim/exp_models.h"
#include "softfloat/mutants.h"

/// The loop over blocks of keys of AttentionFamily::online_tiles.
namespace kvsim::attention {

/// The rows first … first + count − 1 of the heads that share one K/V head, row = query · group +
/// head of the group, over the keys of one split.
struct TileTask {
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t split = 0;
  KeyRange keys;
};

/// Rows of a tile.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Where the rows of a split go: outputs divided by their sum and the logarithm of that sum, by row
/// as in AttentionResult.
struct SplitStore {
  std::span<float> outputs;
  std::span<float> log_sums;
};

/// What does not change from row to row.
class OnlineTiles {
 public:
  OnlineTiles(const Run& run, const SplitPlan& plan, ProductSum scores, ProductSum values)
      : run_(run),
        rule_(*run.kernel.tiles),
        plan_(plan),
        scores_(std::move(scores)),
        values_(std::move(values)),
        exponents_(Exponents::make(rule_, run.scale, run.problem.mask.soft_cap)),
        half_outputs_(values_.output() == softfloat::binary16),
        operand_(rule_.operands_in_half ? softfloat::binary16 : run.problem.storage),
        steps_(row_steps(run.options.engine.level)),
        exp_(gpu_exp2(run)),
        polynomial_(ExpModel::fa4_polynomial),
        exp_of_zero_(exponential(0.0F)) {
    if (operand_ == run.problem.storage) return;
    k_converted_ = read_heads(run, run.problem.k);
    v_converted_ = read_heads(run, run.problem.v);
    round_to(operand_, k_converted_);
    round_to(operand_, v_converted_);
  }

  Result<bool> run_tile(const TileTask& task, const SplitStore& store) const;

 private:
  struct State;

  [[nodiscard]] float rounded_to_half(float x) const {
    round_to(softfloat::binary16, {&x, 1});
    return x;
  }
  void round_to(const softfloat::Format& format, std::span<float> values) const {
    static_cast<void>(round_values(format, values, values, run_.options.engine.level));
  }
  [[nodiscard]] NumberPointer keys(std::int64_t kv_head) const {
    return k_converted_.empty() ? run_.keys(kv_head)
                                : k_converted_.data() + kv_head * head_numbers();
  }
  [[nodiscard]] NumberPointer values(std::int64_t kv_head) const {
    return v_converted_.empty() ? run_.values(kv_head)
                                : v_converted_.data() + kv_head * head_numbers();
  }
  [[nodiscard]] std::int64_t bytes_of_key(const TileTask& task) const {
    return keys(task.kv_head).bytes() * run_.shape().head_dim;
  }
  [[nodiscard]] std::int64_t head_numbers() const {
    return run_.shape().kv_len * run_.shape().head_dim;
  }
  [[nodiscard]] std::int64_t row_of(const TileTask& task, std::int64_t row) const {
    const std::int64_t group = run_.shape().group();
    std::int64_t head = task.kv_head * group + (task.first + row) % group;
    if (mutant_is_on(Mutant::heads_interleaved)) {
      head = (task.first + row) % group * run_.shape().kv_heads + task.kv_head;
    }
    return run_.row_of(head, query_of(task, row));
  }

  [[nodiscard]] AttentionPlace place_of(const TileTask& task, std::int64_t row,
                                        const KeyRange& keys) const {
    const std::int64_t group = run_.shape().group();
    return {task.kv_head * group + (task.first + row) % group, query_of(task, row), task.split,
            keys.begin, keys.size()};
  }
  [[nodiscard]] std::int64_t query_of(const TileTask& task, std::int64_t row) const {
    return (task.first + row) / run_.shape().group();
  }
  [[nodiscard]] KeyRange seen_by(const TileTask& task, std::int64_t row) const {
    return visible_keys(run_.shape(), run_.problem.mask, query_of(task, row));
  }

  [[nodiscard]] KeyRange block_from(const TileTask& task, std::int64_t begin) const {
    return intersect({begin, begin + plan_.block_columns}, task.keys);
  }
  [[nodiscard]] float exponential(float x) const {
    return exponents_.natural() ? exp_.exp(x) : exp_.exp2(x);
  }
  Result<bool> add_scores(const TileTask& task, const RowRange& rows, const KeyRange& block,
                          State& state) const;
  Result<bool> run_block(const TileTask& task, const KeyRange& block, const KeyRange& next,
                         State& state) const;
  void softmax_row(std::int64_t row, const KeyRange& seen, const AttentionPlace& place,
                   State& state) const;
  /// Tells the observer a number or several of every row.
  void show(AttentionStep step, const TileTask& task, const RowRange& rows, const KeyRange& keys,
            std::span<const float> numbers) const;
  [[nodiscard]] float new_maximum(float before, std::span<const float> scores) const;
  /// Whether masked keys have a finite score, so that they can take part.
  [[nodiscard]] bool has_finite_mask() const {
    return rule_.unrisen == UnrisenMaximum::finite_mask;
  }
  [[nodiscard]] bool guards_rescale(bool hides_keys) const;
  [[nodiscard]] bool guards_exponents(bool first_or_hides_keys) const;
  void exponentials(std::span<float> x, bool emulates) const;
  Result<bool> add_unit_row_sum(std::int64_t first, std::int64_t rows, std::int64_t keys,
                                State& state) const;
  void finish(const TileTask& task, State& state, const SplitStore& store) const;

  const Run& run_;
  const TileRule& rule_;
  const SplitPlan& plan_;
  ProductSum scores_;
  ProductSum values_;
  Exponents exponents_;
  bool half_outputs_;
  softfloat::Format operand_;
  const RowSteps& steps_;
  ExpFunction exp_;
  ExpFunction polynomial_;
  float exp_of_zero_;  ///< 1, unless the caller moves results
  std::vector<float> k_converted_, v_converted_;
};

/// The rows of one tile on their way through the blocks.
struct OnlineTiles::State {
  State(std::int64_t rows, std::int64_t head_dim, std::int64_t columns, float first_maximum)
      : q(index(rows * head_dim)),
        o(index(rows * head_dim)),
        p(index(rows * columns)),
        maximum(index(rows), first_maximum),
        rescale(index(rows), 1.0F),
        sums(index(rows * row_sum_parts)),
        started(index(rows)) {}

  std::vector<float> q;        ///< [rows][head_dim]
  std::vector<float> o;        ///< [rows][head_dim]
  std::vector<float> p;        ///< [rows][columns]: scores, exponents, then probabilities
  std::vector<float> scores;   ///< [rows][scored.size()], where several blocks are scored at once
  KeyRange scored;             ///< the keys of `scores`
  std::vector<float> maximum;  ///< [rows]
  std::vector<float> rescale;  ///< [rows]: r of the block
  std::vector<float> sums;     ///< [rows][row_sum_parts]
  std::vector<char> started;   ///< [rows]: whether a block has been visited
};

}  // namespace kvsim::attention
