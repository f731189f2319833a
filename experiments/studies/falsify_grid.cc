// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "experiments/studies/falsify_draw.h"
#include "run/divergence.h"
#include "sim/attention_row.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

using softfloat::Format;

constexpr std::int64_t keys = 128;
constexpr std::int64_t head_dim = 64;  // 1 ÷ √64 is exact in every format
constexpr std::int64_t vocabulary = 256;
constexpr std::string_view tree = "lanes(8,1)";

/// A draw with an output matrix behind it.
struct GridDraw {
  AttentionDraw attention;
  std::vector<double> weights;  ///< [head_dim][vocabulary]
};

std::vector<double> rounded(std::vector<double> values, const Format& first, const Format& second) {
  for (double& each : values) {
    each = round_to(second, DoubleDouble(round_to(first, DoubleDouble(each))));
  }
  return values;
}

/// The draw as it is stored, then as products read it.
GridDraw read_as(const GridDraw& draw, const GridCell& cell) {
  GridDraw read = draw;
  read.attention = rounded_draw(draw.attention, [&](double x) {
    return round_to(cell.operand, DoubleDouble(round_to(cell.storage, DoubleDouble(x))));
  });
  read.weights = rounded(draw.weights, cell.storage, cell.operand);
  return read;
}

struct GridResult {
  std::vector<double> attention;
  std::vector<double> logits;
};

GridResult compute(const GridDraw& draw, const GridCell& cell, const Order& order) {
  const Format softmax_format =
      cell.accumulator == softfloat::binary64 ? softfloat::binary64 : softfloat::binary32;
  AttentionArithmetic sums{.storage = cell.operand,
                           .accumulator = cell.accumulator,
                           .product = Product::fused,
                           .round_scores = false,
                           .round_p = true,
                           .round_out = false};
  AttentionArithmetic softmax = sums;
  softmax.accumulator = softmax_format;
  const AttentionRow row{.keys = keys,
                         .head_dim = head_dim,
                         .q = draw.attention.q,
                         .k_transposed = draw.attention.k_transposed,
                         .key_stride = keys,
                         .v = draw.attention.v};
  const std::vector<double> scores = scores_of_row(sums, order, row).value;
  const std::vector<double> p = softmax_of_row(softmax, order, scores, row.simd).p.value;
  GridResult result;
  result.attention =
      rounded(values_of_row(sums, order, row, p).value, cell.accumulator, cell.output);
  const AttentionRow head{.keys = head_dim,
                          .head_dim = vocabulary,
                          .q = {},
                          .k_transposed = {},
                          .key_stride = head_dim,
                          .v = draw.weights};
  const std::vector<double> hidden = rounded(result.attention, cell.output, cell.operand);
  result.logits =
      rounded(values_of_row(sums, order, head, hidden).value, cell.accumulator, cell.output);
  return result;
}

GridResult without_rounding(const GridDraw& draw) {
  GridResult result;
  result.attention = plain_values(draw.attention, plain_softmax(plain_scores(draw.attention)));
  AttentionDraw head;
  head.keys = head_dim;
  head.head_dim = vocabulary;
  head.v = draw.weights;
  result.logits = plain_values(head, result.attention);
  return result;
}

GridDraw grid_draw(std::uint64_t number) {
  constexpr std::uint64_t first_stream = std::uint64_t{1} << 32;
  constexpr std::uint64_t seed = 0x67726964;  // "grid"
  GridDraw draw{attention_draw(first_stream + number, keys, head_dim), {}};
  draw.weights.resize(static_cast<std::size_t>(head_dim * vocabulary));
  // Outputs are means of normal numbers: with a factor of 4 the largest logit is some 10.
  for (std::size_t i = 0; i < draw.weights.size(); ++i) {
    draw.weights[i] = 4 * normal(seed, number, i);
  }
  return draw;
}

}  // namespace

std::string to_text(const GridCell& cell) {
  return fmt::format("{}/{}/{}/{}", softfloat::format_name(cell.storage),
                     softfloat::format_name(cell.operand), softfloat::format_name(cell.accumulator),
                     softfloat::format_name(cell.output));
}

std::span<const GridCell> grid_cells() {
  static const std::vector<GridCell> cells = [] {
    constexpr std::array storages{softfloat::bfloat16, softfloat::binary16, softfloat::binary32};
    constexpr std::array operands{softfloat::bfloat16, softfloat::binary16, softfloat::tf32,
                                  softfloat::binary32};
    constexpr std::array accumulators{softfloat::binary16, softfloat::binary32,
                                      softfloat::binary64};
    std::vector<GridCell> list;
    list.reserve(storages.size() * operands.size() * accumulators.size() * storages.size());
    for (const Format& storage : storages) {
      for (const Format& operand : operands) {
        for (const Format& accumulator : accumulators) {
          for (const Format& output : storages) {
            list.push_back({storage, operand, accumulator, output});
          }
        }
      }
    }
    return list;
  }();
  return cells;
}

Result<Json> grid_errors(std::uint64_t number) {
  const Result<Order> order = parse_order(tree);
  if (!order) return order.error();
  const GridDraw draw = grid_draw(number);
  const GridResult exact = without_rounding(draw);
  Json errors;
  for (const GridCell& cell : grid_cells()) {
    const GridResult result = compute(read_as(draw, cell), cell, *order);
    const Result<Divergence> distance = divergence(exact.logits, result.logits);
    if (!distance) return distance.error();
    errors[to_text(cell)] = {relative_error(result.attention, exact.attention),
                             relative_error(result.logits, exact.logits), distance->kl};
  }
  return errors;
}

}  // namespace kvsim::experiments
