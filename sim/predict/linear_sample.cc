// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/linear_sample.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

/// Rounds floats to storage in place.
void round_all(const softfloat::Format& storage, std::vector<float>& values) {
  // Every named format can be rounded to at every level of this CPU.
  [[maybe_unused]] const Result<bool> rounded =
      round_values(storage, values, values, best_simd_level());
}

LinearShape launch_shape(const LinearSample& sample, const KernelChoice& kernels,
                         std::int64_t launch_rows, std::int64_t terms) {
  return {launch_rows, sample.all_outputs, terms, sample.storage, kernels.multiprocessors};
}

/// One call on terms first_term … first_term + terms − 1.
Result<std::vector<float>> run_part(const LinearSample& sample, const KernelChoice& kernels,
                                    const LinearCall& call, std::int64_t first_term,
                                    std::int64_t terms, const EngineOptions& engine) {
  LinearProblem problem;
  problem.rows = call.count;
  problem.outputs = sample.outputs;
  problem.terms = terms;
  problem.storage = sample.storage;
  problem.multiprocessors = kernels.multiprocessors;
  problem.launch_rows = call.launch_rows;
  problem.launch_outputs = sample.all_outputs;
  problem.x = sample.x.data() + call.first * sample.terms + first_term;
  problem.x_stride = sample.terms;
  problem.w = sample.w.data() + first_term * sample.outputs;
  problem.w_stride = sample.outputs;
  std::vector<float> out(index(call.count * sample.outputs));
  const LinearKernel& kernel = kernels.linear(call.launch_rows);
  const Result<bool> done = apply_linear(kernel, problem, out.data(), sample.outputs, engine);
  if (!done) return done.error();
  return out;
}

}  // namespace

LinearSample make_linear_sample(const softfloat::Format& storage, const LinearSampleSize& size,
                                std::uint64_t seed, std::uint64_t stream) {
  LinearSample sample{storage,
                      size.rows,
                      size.terms,
                      size.outputs,
                      size.all_outputs == 0 ? size.outputs : size.all_outputs,
                      {},
                      {}};
  sample.x.resize(index(size.rows * size.terms));
  for (std::size_t i = 0; i < sample.x.size(); ++i) {
    sample.x[i] = static_cast<float>(normal(seed, 2 * stream, i));
  }
  const double deviation = 1 / std::sqrt(static_cast<double>(size.terms));
  sample.w.resize(index(size.terms * size.outputs));
  for (std::int64_t k = 0; k < size.terms; ++k) {
    for (std::int64_t j = 0; j < size.outputs; ++j) {
      const auto place = static_cast<std::uint64_t>(k * sample.all_outputs + j);
      sample.w[index(k * size.outputs + j)] =
          static_cast<float>(deviation * normal(seed, 2 * stream + 1, place));
    }
  }
  round_all(storage, sample.x);
  round_all(storage, sample.w);
  return sample;
}

Result<std::vector<float>> run_linear(const LinearSample& sample, const KernelChoice& kernels,
                                      const LinearCall& call, const EngineOptions& engine) {
  return run_part(sample, kernels, call, 0, sample.terms, engine);
}

Result<std::vector<float>> run_linear_on_ranks(const LinearSample& sample,
                                               const KernelChoice& kernels, const LinearCall& call,
                                               std::int64_t ranks, const EngineOptions& engine) {
  const std::int64_t share = sample.terms / ranks;
  std::vector<float> total;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    auto part = run_part(sample, kernels, call, rank * share, share, engine);
    if (!part) return part.error();
    if (rank == 0) {
      total = std::move(*part);
      continue;
    }
    for (std::size_t i = 0; i < total.size(); ++i) total[i] = total[i] + (*part)[i];
    round_all(sample.storage, total);
  }
  return total;
}

Result<std::string> linear_rule(const LinearSample& sample, const KernelChoice& kernels,
                                std::int64_t launch_rows, std::int64_t ranks) {
  const std::int64_t share = sample.terms / ranks;
  const LinearKernel& kernel = kernels.linear(launch_rows);
  const auto order = linear_order(kernel, launch_shape(sample, kernels, launch_rows, share));
  if (!order) return order.error();
  std::string rule = fmt::format("{}: {}", kernel.name, to_string(*order));
  if (ranks > 1) {
    const std::string_view format = softfloat::format_name(sample.storage);
    rule = fmt::format("{} on each of {} ranks, partial sums in {}", rule, ranks, format);
  }
  return rule;
}

}  // namespace kvsim
