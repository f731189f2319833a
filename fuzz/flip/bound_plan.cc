// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fuzz/flip/bound_planner.h"
#include "sim/attention/families.h"
#include "sim/attention/torch_cpu_rules.h"
#include "sim/operators/softmax.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

constexpr double u = binary32_roundoff;

}  // namespace

Error no_bound_for(std::string_view kernel, std::string_view why) {
  return {ErrorKind::usage,
          fmt::format("attention kernel {}: no bound on its error is known ({})", kernel, why)};
}

/// The errors of rounding binary32 numbers to a format.
RoundingUnits rounded_to(RoundingUnits units, const softfloat::Format& format) {
  if (format != softfloat::binary32) return units;
  units.unit_roundoff = 0;
  units.half_quantum = 0;
  return units;
}

/// n roundings of relative error u: γ_n.
double roundings(double n, double roundoff) {
  const double product = n * roundoff;
  return product < 0.5 ? outward(product / (1 - product)) : no_bound;
}

Result<BoundPlan> Planner::run() {
  if (problem_.mask.soft_cap > 0 || problem_.mask.window > 0 || problem_.mask.first_key > 0) {
    return no_bound_for(kernel_.name, "a window, a soft cap or padding");
  }
  plan_.parts = {{0, shape_.kv_len}};
  plan_.block = shape_.kv_len;
  Result<bool> done = true;
  switch (kernel_.family) {
    case AttentionFamily::eager:
      done = eager(*kernel_.eager);
      break;
    case AttentionFamily::online_tiles:
      done = tiles(*kernel_.tiles);
      break;
    case AttentionFamily::paged:
      done = paged();
      break;
    case AttentionFamily::torch_cpu:
      done = torch_cpu(*kernel_.torch_cpu);
      break;
    case AttentionFamily::llama_cpu:
      done = llama_cpu();
      break;
  }
  if (!done) return done.error();
  return std::move(plan_);
}

Result<bool> Planner::take_sums(std::string_view scores, std::string_view values) {
  const Result<Order> of_scores = parse_order(scores);
  if (!of_scores) return of_scores.error();
  const Result<Order> of_values = parse_order(values);
  if (!of_values) return of_values.error();
  const auto first = SumErrors::of_order(*of_scores, sums_.product, shape_.head_dim);
  if (!first) return first.error();
  const auto second = SumErrors::of_order(*of_values, sums_.product, shape_.kv_len);
  if (!second) return second.error();
  plan_.scores = *first;
  plan_.values = *second;
  return true;
}

LinearShape Planner::linear_shape(std::int64_t rows, std::int64_t outputs,
                                  std::int64_t terms) const {
  return {.rows = rows, .outputs = outputs, .terms = terms, .storage = problem_.storage};
}

Result<bool> Planner::eager(const EagerRule& rule) {
  plan_.stored_scores = rule.scale_on_both ? 1 : 2;
  plan_.score_roundings = 2.2;
  plan_.per_gap = 1;
  plan_.fixed = 2;
  plan_.divided_first = true;
  plan_.division = 1.01 * u;
  if (rule.scale_on_both) {
    // √scale, its product, and the rounding to storage, of q and of k.
    plan_.factor_error = 2.01 * (storage_.unit_roundoff + 3 * u);
    plan_.factors_are_exact = false;
  }
  if (!rule.scores_kernel.empty()) return eager_by_kernels(rule);
  const Result<Order> order = parse_order(rule.row_sum);
  if (!order) return order.error();
  if (rule.softmax_in_storage) {
    plan_.roundoff = storage_.unit_roundoff;
    plan_.exponential_quantum = storage_.half_quantum;
  }
  plan_.row_sum = roundings(count(height(*order, shape_.kv_len)) + 1, plan_.roundoff);
  return take_sums(sums_.scores, sums_.values);
}

Result<bool> Planner::eager_by_kernels(const EagerRule& rule) {
  const LinearKernel* const scores = find_linear_kernel(rule.scores_kernel);
  const LinearKernel* const values = find_linear_kernel(rule.values_kernel);
  const SoftmaxKernel* const softmax = find_softmax_kernel(rule.softmax_kernel);
  if (scores == nullptr || values == nullptr || softmax == nullptr) {
    return no_bound_for(kernel_.name, "a kernel of another table is missing");
  }
  const auto first =
      SumErrors::of_linear(*scores, linear_shape(shape_.query_len, shape_.kv_len, shape_.head_dim));
  if (!first) return first.error();
  const auto second =
      SumErrors::of_linear(*values, linear_shape(shape_.query_len, shape_.head_dim, shape_.kv_len));
  if (!second) return second.error();
  plan_.scores = *first;
  plan_.values = *second;
  plan_.exponential =
      std::max(exponential_error(softmax->exp), exponential_error(softmax->tail_exp));
  // Whatever the order, every number goes through fewer additions than there are numbers.
  plan_.row_sum = roundings(count(shape_.kv_len));
  return true;
}

Result<bool> Planner::torch_cpu(const TorchCpuRule& rule) {
  using attention::torch_cpu::keys_of_a_block;
  const LinearKernel* const scores = find_linear_kernel(rule.scores_kernel);
  if (scores == nullptr) return no_bound_for(kernel_.name, "a kernel of another table is missing");
  const std::int64_t queries = attention::torch_cpu::queries_of_a_block(shape_.query_len);
  const std::int64_t rows = (shape_.query_len - 1) % queries + 1;  // with the last query
  plan_.block = keys_of_a_block;
  double height = 0;
  for (const std::int64_t keys :
       {std::min(keys_of_a_block, shape_.kv_len), (shape_.kv_len - 1) % keys_of_a_block + 1}) {
    const auto each = SumErrors::of_linear(*scores, linear_shape(rows, keys, shape_.head_dim));
    if (!each) return each.error();
    height = std::max(height, each->relative);
  }
  plan_.scores.relative = height;
  plan_.score_roundings = 2.2;
  plan_.per_gap = 2;
  plan_.fixed = 2;
  const bool wide = problem_.storage == softfloat::binary32;
  plan_.exponential = exponential_error(wide ? ExpModel::torch_exp_u20 : ExpModel::torch_fexp_u20);
  plan_.dropped_beyond = 86;  // the vector functions give +0 from there on
  plan_.rescaling = 2 * u;
  const double blocks = count((shape_.kv_len + keys_of_a_block - 1) / keys_of_a_block);
  plan_.row_sum = roundings(blocks * (count(keys_of_a_block / rule.lanes + rule.lanes) + 8));
  if (attention::torch_cpu::in_passes(rows, shape_.head_dim)) {
    plan_.values = SumErrors::of_height(std::min(count(shape_.kv_len), 384.0) + 4 * blocks + 4);
  } else {
    // Products are rounded, and groups of four are added up in two steps.
    plan_.values = SumErrors::term_by_term(RoundingUnits(softfloat::binary32), 3);
  }
  plan_.finish = 2.1;
  return true;
}

Result<bool> Planner::llama_cpu() {
  if (attention::keys_of_chunk(problem_) < shape_.kv_len) {
    return no_bound_for(kernel_.name, "how it merges threads");
  }
  // 32 lanes, 5 joins, the rest in binary64, then one rounding.
  plan_.scores = SumErrors::of_height(std::ceil(count(shape_.head_dim) / 32) + 9);
  plan_.score_roundings = 2.2;
  plan_.per_gap = 1;
  plan_.fixed = 1;
  plan_.block = 1;
  plan_.stored = rounded_to(storage_, softfloat::binary32);
  plan_.values = SumErrors::term_by_term(storage_, 0);
  plan_.values.chain.conversion += 2.02 * u;  // rounded to binary32 first
  plan_.rescaling = 1.01 * (u + storage_.unit_roundoff);
  plan_.row_sum = roundings(count(shape_.kv_len));
  plan_.finish = 2.1;
  return true;
}

double exponential_error(ExpModel model) {
  switch (model) {
    case ExpModel::correctly_rounded:
    case ExpModel::cuda_expf:   // a correctly rounded result stands for it
    case ExpModel::ex2_approx:  // likewise
      return 0;
    case ExpModel::libm_expf:
      return 0.01 * u;
    case ExpModel::sleef_u10:
      return 2 * u;
    case ExpModel::torch_exp_u20:
      return 12 * u;
    case ExpModel::torch_fexp_u20:
      return 1.3e-4;
    case ExpModel::fa4_polynomial:
      break;
  }
  return 9e-5;
}

Result<BoundPlan> plan_bound(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const auto sums = attention::check_problem(kernel, problem);
  if (!sums) return sums.error();
  return Planner(kernel, problem, **sums).run();
}

}  // namespace kvsim::fuzz
