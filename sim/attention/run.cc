// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/run.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "sim/attention/families.h"
#include "sim/engine/column_kernel.h"
#include "sim/engine/panel.h"
#include "softfloat/index.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

using attention::Run;

constexpr int most_threads = 1024;

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> check_options(const AttentionOptions& options) {
  if (options.engine.threads < 1 || options.engine.threads > most_threads) {
    return usage(
        fmt::format("{} threads: accepted are 1 to {}", options.engine.threads, most_threads));
  }
  if (engine::column_kernel(options.engine.level) == nullptr) {
    return Error{ErrorKind::unavailable, fmt::format("SIMD level '{}' is not available on this CPU",
                                                     simd_level_name(options.engine.level))};
  }
  if (options.exp) return check_exp_options(ExpModel::ex2_approx, *options.exp);
  return true;
}

Result<bool> run_family(const Run& run, AttentionResult& result) {
  switch (run.kernel.family) {
    case AttentionFamily::eager:
      return attention::run_eager(run, result);
    case AttentionFamily::online_tiles:
      return attention::run_online_tiles(run, result);
    case AttentionFamily::paged:
      return attention::run_paged(run, result);
    case AttentionFamily::torch_cpu:
      return attention::run_torch_cpu(run, result);
    case AttentionFamily::llama_cpu:
      break;
  }
  return attention::run_llama_cpu(run, result);
}

}  // namespace

std::vector<float> attention::read_heads(const Run& run, NumberPointer numbers) {
  const AttentionShape& shape = run.shape();
  const std::int64_t count = shape.kv_len * shape.head_dim;
  std::vector<float> heads(index(shape.kv_heads * count));
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    engine::read_numbers(numbers + head * run.head_stride(), count, heads.data() + head * count,
                         run.options.engine.level);
  }
  return heads;
}

namespace {

Result<AttentionResult> run_with(const AttentionKernel& kernel, const AttentionProblem& problem,
                                 const AttentionOptions& options, AttentionObserver* observer) {
  const Result<const StorageSums*> sums = attention::check_problem(kernel, problem);
  if (!sums) return sums.error();
  if (problem.q == nullptr || problem.k.is_null() || problem.v.is_null()) {
    return usage("q, k and v: all three are needed");
  }
  const Result<bool> checked = check_options(options);
  if (!checked) return checked.error();

  const AttentionShape& shape = problem.shape;
  const auto head_dim = static_cast<double>(shape.head_dim);
  const double root = mutant_is_on(Mutant::scale_not_rooted) ? head_dim : std::sqrt(head_dim);
  float scale = problem.scale > 0 ? problem.scale : static_cast<float>(1.0 / root);
  if (mutant_is_on(Mutant::threads_change_scale) && options.engine.threads > 1) scale *= 1.25F;
  AttentionResult result;
  const std::int64_t rows = shape.query_heads * (shape.query_len - problem.first_query);
  result.out.assign(index(rows * shape.head_dim), 0.0F);
  result.lse.assign(index(rows), -std::numeric_limits<float>::infinity());
  const Run given{kernel, problem, options, *sums.value(), scale};
  std::vector<float> k;
  std::vector<float> v;
  AttentionProblem in_floats = problem;
  const bool converts = kernel.family != AttentionFamily::online_tiles &&
                        (problem.k.floats() == nullptr || problem.v.floats() == nullptr);
  if (converts) {
    k = attention::read_heads(given, problem.k);
    v = attention::read_heads(given, problem.v);
    in_floats.k = k.data();
    in_floats.v = v.data();
    in_floats.kv_head_stride = 0;
  }
  const Run run{kernel, converts ? in_floats : problem, options, *sums.value(), scale, observer};
  const Result<bool> done = run_family(run, result);
  if (!done) return done.error();
  for (float& x : result.out) {
    if (std::isnan(x)) x = engine::canonical_nan;
  }
  for (float& x : result.lse) {
    if (std::isnan(x)) x = engine::canonical_nan;
  }
  return result;
}

}  // namespace

Result<AttentionResult> run_attention(const AttentionKernel& kernel,
                                      const AttentionProblem& problem,
                                      const AttentionOptions& options) {
  return run_with(kernel, problem, options, nullptr);
}

Result<AttentionResult> observe_attention(const AttentionKernel& kernel,
                                          const AttentionProblem& problem, SimdLevel level,
                                          AttentionObserver& observer) {
  AttentionOptions options;
  options.engine = {.threads = 1, .level = level};
  return run_with(kernel, problem, options, &observer);
}

}  // namespace kvsim
