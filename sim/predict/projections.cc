// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/projections.h"

#include <algorithm>

#include "sim/predict/linear_sample.h"
#include "sim/predict/streams.h"

namespace kvsim {
namespace {

/// One row at a time against all rows together.
Result<VectorDifference> compare_rows(const ProjectionOptions& options,
                                      const LinearSample& sample) {
  const auto together =
      run_linear(sample, options.kernels, {0, sample.rows, options.launch_rows}, options.engine);
  if (!together) return together.error();
  // Rows are independent of each other once the kernel is chosen.
  const auto alone = run_linear(sample, options.kernels, {0, sample.rows, 1}, options.engine);
  if (!alone) return alone.error();
  return compare_vectors(options.storage, *alone, *together);
}

}  // namespace

Result<ProjectionDifference> compare_projections(const ProjectionOptions& options) {
  ProjectionDifference result;
  result.rows = options.rows;
  result.launch_rows = std::max(options.launch_rows, options.rows);
  const LinearSampleSize size{options.rows, options.hidden, options.kv_width, options.kv_width};
  for (const auto& [stream, difference] :
       {std::pair{streams::k_projection, &result.k}, std::pair{streams::v_projection, &result.v}}) {
    const LinearSample sample = make_linear_sample(options.storage, size, options.seed, stream);
    const auto compared = compare_rows(options, sample);
    if (!compared) return compared.error();
    *difference = *compared;
    if (!result.one_row_rule.empty()) continue;
    const auto one = linear_rule(sample, options.kernels, 1);
    if (!one) return one.error();
    const auto all = linear_rule(sample, options.kernels, result.launch_rows);
    if (!all) return all.error();
    result.one_row_rule = *one;
    result.all_rows_rule = *all;
  }
  return result;
}

}  // namespace kvsim
