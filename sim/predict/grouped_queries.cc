// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/grouped_queries.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/predict/head_errors.h"

namespace kvsim {
namespace {

/// Errors of one layer by source, as [heads][positions · head_dim].
struct LayerErrors {
  HeadErrors kernel;
  HeadErrors storage;  ///< empty without unrounded numbers
  HeadErrors both;     ///< likewise
};

/// `differences` stand as [positions][heads][head_dim].
HeadErrors by_head(const AttentionShape& shape, std::int64_t group, std::int64_t positions,
                   const std::vector<double>& differences) {
  HeadErrors errors{shape.query_heads, group, positions * shape.head_dim, {}};
  errors.values.reserve(differences.size());
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    for (std::int64_t position = 0; position < positions; ++position) {
      const auto begin =
          differences.begin() +
          static_cast<std::ptrdiff_t>((position * shape.query_heads + head) * shape.head_dim);
      errors.values.insert(errors.values.end(), begin,
                           begin + static_cast<std::ptrdiff_t>(shape.head_dim));
    }
  }
  return errors;
}

/// a − b, each about 100 bits wide.
std::vector<double> differences(const std::vector<DoubleDouble>& a,
                                const std::vector<DoubleDouble>& b) {
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = (a[i] - b[i]).high;
  return result;
}

Result<LayerErrors> layer_errors(const GroupedQueriesOptions& options, std::int64_t group,
                                 const AttentionNumbers& stored,
                                 const AttentionNumbers* unrounded) {
  const AttentionPairOptions& attention = options.attention;
  const auto outputs = decode_outputs(attention, stored);
  if (!outputs) return outputs.error();
  const int threads = attention.run.engine.threads;
  const std::vector<DoubleDouble> computed(outputs->values.begin(), outputs->values.end());
  const std::vector<DoubleDouble> exact =
      exact_outputs(attention.layer, stored, attention.positions, threads);
  const auto in_heads = [&](const std::vector<double>& values) {
    return by_head(stored.shape, group, attention.positions, values);
  };
  LayerErrors errors;
  errors.kernel = in_heads(differences(computed, exact));
  if (unrounded == nullptr) return errors;
  AttentionNumbers before = *unrounded;
  before.q = stored.q;  // K and V alone are rounded: what the heads of a group share
  const std::vector<DoubleDouble> ideal =
      exact_outputs(attention.layer, before, attention.positions, threads);
  errors.storage = in_heads(differences(exact, ideal));
  errors.both = in_heads(differences(computed, ideal));
  return errors;
}

GroupedError describe(const GroupedQueriesOptions& options, std::string source,
                      const HeadErrors& grouped, const HeadErrors* multi_head,
                      std::int64_t head_dim) {
  GroupedError result;
  result.source = std::move(source);
  result.mean_correlation = mean_correlation(grouped);
  result.formula = amplification(grouped.group, result.mean_correlation);
  result.sum_gain = sum_over_heads_gain(grouped);
  if (multi_head != nullptr) result.multi_head_sum_gain = sum_over_heads_gain(*multi_head);
  result.amplification = result.sum_gain / result.multi_head_sum_gain;
  const auto projected = [&](const HeadErrors& errors) {
    return projection_gain(errors, head_dim, options.projection_outputs, options.seed);
  };
  if (multi_head != nullptr) {
    const double without = projected(*multi_head);
    if (without > 0) result.projected = projected(grouped) / without;
  }
  return result;
}

/// The kernel on K and V repeated for every query head, with the splits of the grouped run.
Result<VectorDifference> compare_repeated(const GroupedQueriesOptions& options,
                                          const AttentionNumbers& grouped) {
  AttentionPairOptions attention = options.attention;
  attention.positions = 1;
  const auto before = decode_outputs(attention, grouped);
  if (!before) return before.error();
  attention.on.launch.splits = before->side.splits;
  attention.on.launch.split_size = 0;
  const auto forced = decode_outputs(attention, grouped);
  if (!forced) return forced.error();
  const auto repeated = decode_outputs(attention, repeat_heads(grouped));
  if (!repeated) return repeated.error();
  return compare_vectors(before->side.output, repeated->values, forced->values);
}

}  // namespace

Result<GroupedQueries> measure_grouped_queries(const GroupedQueriesOptions& options,
                                               const GroupedNumbers& numbers) {
  const AttentionShape& shape = numbers.grouped->shape;
  GroupedQueries result;
  result.group = shape.group();
  result.ceiling = std::sqrt(static_cast<double>(result.group));
  result.samples = options.attention.positions * shape.head_dim;
  const auto grouped = layer_errors(options, result.group, *numbers.grouped, numbers.unrounded);
  if (!grouped) return grouped.error();
  LayerErrors multi_head;
  const bool has_multi_head = numbers.multi_head != nullptr && result.group > 1;
  if (has_multi_head) {
    auto errors =
        layer_errors(options, result.group, *numbers.multi_head, numbers.multi_head_unrounded);
    if (!errors) return errors.error();
    multi_head = std::move(*errors);
  }
  const std::array<std::pair<const char*, HeadErrors LayerErrors::*>, 3> sources{{
      {"the kernel", &LayerErrors::kernel},
      {"K and V rounded to storage", &LayerErrors::storage},
      {"both", &LayerErrors::both},
  }};
  for (const auto& [name, member] : sources) {
    const HeadErrors& errors = (*grouped).*member;
    if (errors.values.empty()) continue;
    const HeadErrors& other = multi_head.*member;
    result.errors.push_back(
        describe(options, name, errors, other.values.empty() ? nullptr : &other, shape.head_dim));
  }
  const auto repeated = compare_repeated(options, *numbers.grouped);
  if (!repeated) return repeated.error();
  result.repeated = *repeated;
  return result;
}

}  // namespace kvsim
