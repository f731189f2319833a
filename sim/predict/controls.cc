// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sim/attention_row.h"
#include "sim/parallel.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

AttentionOrders everywhere(const std::string& text) {
  const Order order = parse_order(text).value();
  return {order, order, order};
}

/// Outputs [query_heads][head_dim] of one query under given arithmetic and orders. Keys may be
/// taken from the last to the first.
std::vector<double> outputs(const AttentionArithmetic& arithmetic, const AttentionOrders& orders,
                            const AttentionNumbers& step, bool reversed, int threads,
                            SimdLevel simd) {
  const AttentionShape& shape = step.shape;
  std::vector<double> out(index(shape.query_heads * shape.head_dim));
  parallel_for(shape.query_heads, threads, [&](std::int64_t head) {
    const std::int64_t base = head / shape.group() * shape.kv_len * shape.head_dim;
    const auto q_begin = step.q.begin() + static_cast<std::ptrdiff_t>(head * shape.head_dim);
    const std::vector<double> q(q_begin, q_begin + static_cast<std::ptrdiff_t>(shape.head_dim));
    std::vector<double> k(index(shape.kv_len * shape.head_dim));
    std::vector<double> v(k.size());
    for (std::int64_t j = 0; j < shape.kv_len; ++j) {
      const std::int64_t from = reversed ? shape.kv_len - 1 - j : j;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        k[index(d * shape.kv_len + j)] = step.k[index(base + from * shape.head_dim + d)];
        v[index(j * shape.head_dim + d)] = step.v[index(base + from * shape.head_dim + d)];
      }
    }
    const AttentionRow row{.keys = shape.kv_len,
                           .head_dim = shape.head_dim,
                           .q = q,
                           .k_transposed = k,
                           .key_stride = shape.kv_len,
                           .v = v,
                           .simd = simd};
    const BoundedValues values = attention_of_row(arithmetic, orders, row);
    std::copy(values.value.begin(), values.value.end(),
              out.begin() + static_cast<std::ptrdiff_t>(head * shape.head_dim));
  });
  return out;
}

ControlResult compared(std::string name, std::string meaning, bool must_be_zero,
                       std::span<const double> a, std::span<const double> b) {
  ControlResult result{std::move(name),
                       std::move(meaning),
                       static_cast<std::int64_t>(a.size()),
                       count_different(a, b),
                       0,
                       must_be_zero};
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (difference > 0) result.relative_l2 = std::sqrt(difference / norm);
  return result;
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// The order of the sums over the keys that a side's splits and blocks amount to.
std::string block_order(const AttentionSide& side) {
  const std::int64_t block = std::max<std::int64_t>(1, side.block_columns);
  if (side.splits > 1) return fmt::format("split({})/blocks({})", side.splits, block);
  return fmt::format("blocks({})", block);
}

AttentionArithmetic unrounded(const softfloat::Format& format) {
  AttentionArithmetic arithmetic;
  arithmetic.storage = format;
  arithmetic.accumulator = format;
  return arithmetic;
}

}  // namespace

Result<std::vector<ControlResult>> run_controls(const AttentionPairOptions& options,
                                                const AttentionPair& pair,
                                                const AttentionNumbers& numbers) {
  const std::int64_t last = numbers.shape.query_len - 1;
  const AttentionNumbers step = part_of_sequence(numbers, last, last);
  AttentionPairOptions one = options;
  one.positions = 1;
  const auto first = decode_outputs(one, numbers);
  if (!first) return first.error();
  const auto second = decode_outputs(one, numbers);
  if (!second) return second.error();
  const auto copy = decode_outputs(one, step);
  if (!copy) return copy.error();
  std::vector<ControlResult> results;
  results.push_back(compared("replica", "the decode kernel twice", true, widened(first->values),
                             widened(second->values)));
  results.push_back(compared(
      "identity", "the decode kernel on a long sequence's last step and on that step alone", true,
      widened(first->values), widened(copy->values)));

  const int threads = options.run.engine.threads;
  const SimdLevel simd = options.run.engine.level;
  AttentionArithmetic exact;
  exact.storage = options.layer.storage;
  exact.accumulator = softfloat::binary64;
  const AttentionOrders exact_orders = everywhere("exact");
  results.push_back(compared("exact accumulator", "every sum exact, keys in order and in reverse",
                             true, outputs(exact, exact_orders, step, false, threads, simd),
                             outputs(exact, exact_orders, step, true, threads, simd)));
  std::string on = block_order(pair.on);
  const std::string off = block_order(pair.off);
  if (on == off) on = "sequential";
  for (const auto& [name, format] :
       {std::pair{"float32", softfloat::binary32}, std::pair{"float64", softfloat::binary64}}) {
    results.push_back(
        compared(name, fmt::format("storage and accumulation in {}: {} against {}", name, on, off),
                 false, outputs(unrounded(format), everywhere(on), step, false, threads, simd),
                 outputs(unrounded(format), everywhere(off), step, false, threads, simd)));
  }
  return results;
}

}  // namespace kvsim
