// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/attention_pair.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "sim/attention_row.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

constexpr std::int64_t part_of_prefill = 128;

void note_run(AttentionSide& side, const AttentionResult& result, const AttentionShape& shape) {
  side.queries = shape.query_len;
  side.keys = shape.kv_len;
  side.splits = result.splits;
  side.block_columns = result.block_columns;
  side.exp_bounded = side.exp_bounded || result.exp_bounded;
}

AttentionSide start_side(const AttentionChoice& choice, const AttentionLayer& layer) {
  AttentionSide side;
  side.kernel = choice.kernel;
  side.output = output_format(*choice.kernel, layer.storage);
  return side;
}

double prefill_work(const AttentionShape& shape) {
  return static_cast<double>(shape.query_heads * shape.query_len) *
         static_cast<double>(shape.kv_len) * static_cast<double>(shape.head_dim);
}

ErrorSummary error_of(const AttentionOutputs& outputs, std::span<const DoubleDouble> exact) {
  ErrorSums sums;
  BoundedValues values;
  values.value.assign(outputs.values.begin(), outputs.values.end());
  sums.add(outputs.side.output, values, exact);
  return sums.summary();
}

}  // namespace

Result<AttentionOutputs> decode_outputs(const AttentionPairOptions& options,
                                        const AttentionNumbers& numbers) {
  AttentionOutputs outputs{{}, start_side(options.on, options.layer)};
  for (std::int64_t i = options.positions; i > 0; --i) {
    const std::int64_t query = numbers.shape.query_len - i;
    const AttentionNumbers step = part_of_sequence(numbers, query, query);
    const auto result = run_attention(
        *options.on.kernel, attention_problem(step, options.layer, options.on.launch), options.run);
    if (!result) return result.error();
    outputs.values.insert(outputs.values.end(), result->out.begin(), result->out.end());
    note_run(outputs.side, *result, step.shape);
  }
  return outputs;
}

Result<AttentionOutputs> prefill_outputs(const AttentionPairOptions& options,
                                         const AttentionNumbers& numbers) {
  const bool whole = prefill_work(numbers.shape) <= static_cast<double>(options.most_prefill_work);
  AttentionNumbers last;
  AttentionLaunch launch = options.off.launch;
  if (!whole) {
    last = last_queries(
        numbers, std::min(numbers.shape.query_len, std::max(options.positions, part_of_prefill)));
    // All queries together would keep every multiprocessor busy without splitting the keys.
    if (launch.splits == 0 && launch.split_size == 0) launch.splits = 1;
  }
  const AttentionNumbers& all = whole ? numbers : last;
  const AttentionShape& shape = all.shape;
  AttentionOutputs outputs{{}, start_side(options.off, options.layer)};
  const auto result = run_attention(*options.off.kernel,
                                    attention_problem(all, options.layer, launch), options.run);
  if (!result) return result.error();
  note_run(outputs.side, *result, shape);
  for (std::int64_t i = shape.query_len - options.positions; i < shape.query_len; ++i) {
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const auto row = result->out.begin() +
                       static_cast<std::ptrdiff_t>((head * shape.query_len + i) * shape.head_dim);
      outputs.values.insert(outputs.values.end(), row,
                            row + static_cast<std::ptrdiff_t>(shape.head_dim));
    }
  }
  return outputs;
}

std::vector<DoubleDouble> exact_outputs(const AttentionLayer& layer,
                                        const AttentionNumbers& numbers, std::int64_t positions,
                                        int threads) {
  const AttentionShape& shape = numbers.shape;
  const ExactAttention exact(numbers, layer);
  std::vector<DoubleDouble> out(index(positions * shape.query_heads * shape.head_dim));
  parallel_for(positions * shape.query_heads, threads, [&](std::int64_t i) {
    const std::int64_t query = shape.query_len - positions + i / shape.query_heads;
    const std::vector<DoubleDouble> row = exact.row(i % shape.query_heads, query);
    std::copy(row.begin(), row.end(),
              out.begin() + static_cast<std::ptrdiff_t>(i * shape.head_dim));
  });
  return out;
}

Result<AttentionPair> compare_attention(const AttentionPairOptions& options,
                                        const AttentionNumbers& numbers) {
  const Result<AttentionOutputs> on = decode_outputs(options, numbers);
  if (!on) return on.error();
  const Result<AttentionOutputs> off = prefill_outputs(options, numbers);
  if (!off) return off.error();
  const std::vector<DoubleDouble> exact =
      exact_outputs(options.layer, numbers, options.positions, options.run.engine.threads);

  const AttentionShape& shape = numbers.shape;
  AttentionPair pair;
  pair.positions = options.positions;
  pair.on = on->side;
  pair.on.error = error_of(*on, exact);
  pair.off = off->side;
  pair.off.error = error_of(*off, exact);
  pair.whole_prefix = off->side.queries == shape.kv_len;
  DifferenceSums all;
  std::vector<DifferenceSums> heads(index(shape.query_heads));
  for (std::int64_t row = 0; row < options.positions * shape.query_heads; ++row) {
    const auto part = [&](const AttentionOutputs& outputs) {
      return std::span(outputs.values).subspan(index(row * shape.head_dim), index(shape.head_dim));
    };
    all.add(off->side.output, part(*on), part(*off));
    heads[index(row % shape.query_heads)].add(off->side.output, part(*on), part(*off));
  }
  pair.difference = all.total();
  for (const DifferenceSums& head : heads) pair.by_head.push_back(head.total());
  return pair;
}

}  // namespace kvsim
