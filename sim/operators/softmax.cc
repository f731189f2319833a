// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/softmax.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/elementary.h"
#include "sim/operators/operator_checks.h"
#include "sim/operators/row_sums.h"
#include "sim/order.h"
#include "sim/sleef.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr std::string_view torch_cpu_source =
    "pytorch/pytorch, aten/src/ATen/native/cpu/SoftMaxKernel.cpp, vec/functional_base.h; replayed "
    "on torch 2.11";
constexpr std::string_view torch_gpu_source =
    "pytorch/pytorch, aten/src/ATen/native/cuda/PersistentSoftmax.cuh";
constexpr auto rows = std::to_array<SoftmaxKernel>({
    {.name = "torch-cpu-softmax",
     .device = "CPU",
     .order = "lanes(16,1,join=halving)",
     .short_below = 16,
     .short_order = "sequential",
     .exp = ExpModel::sleef_u10,
     .result = SoftmaxResult::times_reciprocal,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "float32 scores (dtype=float32 included) with AVX-512"},
    {.name = "torch-cpu-softmax-16bit",
     .device = "CPU",
     .order = "lanes(16,1,join=halving,tail=scalar)",
     .exp = ExpModel::sleef_u10,
     .group = 16,
     .tail_exp = ExpModel::libm_expf,
     .result = SoftmaxResult::times_reciprocal,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "bfloat16 and float16 scores without dtype=float32"},
    {.name = "torch-cpu-log-softmax",
     .device = "CPU",
     .order = "lanes(16,1,join=halving)",
     .short_below = 16,
     .short_order = "sequential",
     .exp = ExpModel::sleef_u10,
     .result = SoftmaxResult::sleef_logarithm,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "float32 scores with AVX-512"},
    {.name = "torch-cpu-avx2-softmax",
     .device = "CPU",
     .order = "lanes(8,1,join=halving)",
     .short_below = 8,
     .short_order = "sequential",
     .exp = ExpModel::sleef_u10,
     .result = SoftmaxResult::times_reciprocal,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "float32 scores (dtype=float32 included) with ATEN_CPU_CAPABILITY=avx2"},
    {.name = "torch-cpu-avx2-softmax-16bit",
     .device = "CPU",
     .order = "lanes(8,1,join=halving,tail=scalar)",
     .exp = ExpModel::sleef_u10,
     .group = 8,
     .tail_exp = ExpModel::libm_expf,
     .result = SoftmaxResult::times_reciprocal,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "bfloat16, float16 scores without dtype=float32, with ATEN_CPU_CAPABILITY=avx2"},
    {.name = "torch-cpu-avx2-log-softmax",
     .device = "CPU",
     .order = "lanes(8,1,join=halving)",
     .short_below = 8,
     .short_order = "sequential",
     .exp = ExpModel::sleef_u10,
     .result = SoftmaxResult::sleef_logarithm,
     .source = torch_cpu_source,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "float32 scores with ATEN_CPU_CAPABILITY=avx2"},
    {.name = "gpu-softmax",
     .device = "GPU",
     .order = "lanes(32,1,join=butterfly)",
     .exp = ExpModel::cuda_expf,
     .result = SoftmaxResult::quotient,
     .source = torch_gpu_source,
     .date = "2025",
     .evidence = Evidence::inferred,
     .note = "one warp for a row, as up to 1024 elements"},
    {.name = "gpu-log-softmax",
     .device = "GPU",
     .order = "lanes(32,1,join=butterfly)",
     .exp = ExpModel::cuda_expf,
     .result = SoftmaxResult::logarithm,
     .source = torch_gpu_source,
     .date = "2025",
     .evidence = Evidence::inferred,
     .note = "one warp for a row, as up to 1024 elements; logf taken as correctly rounded"},
    {.name = "gpu-softmax-block",
     .device = "GPU",
     .order = "lanes(1024,1,join=butterfly)",
     .exp = ExpModel::cuda_expf,
     .result = SoftmaxResult::quotient,
     .source = "pytorch/pytorch, aten/src/ATen/native/cuda/SoftMax.cu",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "rows beyond 1024 elements: the order within the block is assumed"},
    {.name = "batch-invariant-log-softmax",
     .device = "GPU",
     .order = "blocks(1024,init=zero)/split(4,multiple=256,merge=butterfly)/"
              "split(32,multiple=8,merge=butterfly)",
     .exp = ExpModel::ex2_approx,
     .result = SoftmaxResult::logarithm,
     .source = "thinking-machines-lab/batch_invariant_ops, batch_invariant_ops.py, "
               "_log_softmax_kernel: blocks of 1024",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "the order within a block is assumed: 128 threads of 8 elements, xor trees; tl.exp is "
             "ex2.approx of x log2 e: bounded"},
    {.name = "control-softmax",
     .device = "any",
     .order = "sequential",
     .result = SoftmaxResult::quotient,
     .source = "Milakov, Gimelshein, \"Online normalizer calculation for softmax\", 2018, "
               "algorithm 2",
     .date = "2018",
     .evidence = Evidence::documented,
     .note = "element by element, correctly rounded exp"},
    {.name = "control-log-softmax",
     .device = "any",
     .order = "sequential",
     .result = SoftmaxResult::logarithm,
     .source = "the logarithm of control-softmax",
     .date = "2018",
     .evidence = Evidence::documented,
     .note = "element by element, correctly rounded exp and log"},
});

/// The largest element of a row; NaN where one is NaN.
float maximum(std::span<const float> row) {
  float result = -std::numeric_limits<float>::infinity();
  for (const float x : row) {
    if (std::isnan(x)) return x;
    result = x > result ? x : result;
  }
  return result;
}

/// e^t of rows side by side.
void exponentials(const SoftmaxKernel& kernel, const SoftmaxProblem& problem,
                  std::span<const float> t, std::span<float> e, SimdLevel level) {
  const ExpFunction exp = softmax_exp(kernel, problem);
  const auto columns = static_cast<std::size_t>(problem.columns);
  const std::size_t rest =
      kernel.group == 0 || problem.exp ? 0 : columns % static_cast<std::size_t>(kernel.group);
  if (rest == 0) {
    exp.exp(t, e, level);
    return;
  }
  const ExpFunction tail(kernel.tail_exp);
  for (std::size_t first = 0; first < t.size(); first += columns) {
    const std::size_t end = first + columns - rest;
    exp.exp(t.subspan(first, columns - rest), e.subspan(first, columns - rest), level);
    tail.exp(t.subspan(end, rest), e.subspan(end, rest), level);
  }
}

}  // namespace

std::span<const SoftmaxKernel> softmax_kernels() { return rows; }

const SoftmaxKernel* find_softmax_kernel(std::string_view name) {
  return operators::find_row(softmax_kernels(), name);
}

ExpFunction softmax_exp(const SoftmaxKernel& kernel, const SoftmaxProblem& problem) {
  return problem.exp ? *problem.exp : ExpFunction(kernel.exp);
}

Result<bool> apply_softmax(const SoftmaxKernel& kernel, const SoftmaxProblem& problem, float* out,
                           const EngineOptions& options) {
  Result<bool> sizes = operators::check_sizes(kernel.name, problem.rows, problem.columns);
  if (!sizes) return sizes;
  const bool is_short = problem.columns < kernel.short_below;
  const Result<Order> order = parse_order(is_short ? kernel.short_order : kernel.order);
  if (!order) return order.error();
  const std::size_t columns = static_cast<std::size_t>(problem.columns);
  std::vector<float> t(problem.x, problem.x + problem.rows * problem.columns);
  if (t.empty()) return true;

  for (std::size_t first = 0; first < t.size(); first += columns) {
    const std::span<float> row = std::span(t).subspan(first, columns);
    const float largest = maximum(row);
    for (float& x : row) x -= largest;
  }
  std::vector<float> e(t.size());
  exponentials(kernel, problem, t, e, options.level);
  std::vector<float> sums(static_cast<std::size_t>(problem.rows));
  Result<bool> summed =
      sum_rows({*order, Product::rounded, problem.rows, problem.columns, e.data(), nullptr},
               sums.data(), options);
  if (!summed) return summed;

  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float reciprocal = 1.0F / sums[i];
    float logarithm = 0;
    if (kernel.result == SoftmaxResult::logarithm) logarithm = log_f32(sums[i]);
    if (kernel.result == SoftmaxResult::sleef_logarithm) logarithm = sleef_log_u10(sums[i]);
    for (std::size_t k = i * columns; k < (i + 1) * columns; ++k) {
      switch (kernel.result) {
        case SoftmaxResult::times_reciprocal:
          e[k] *= reciprocal;
          break;
        case SoftmaxResult::quotient:
          e[k] /= sums[i];
          break;
        case SoftmaxResult::logarithm:
        case SoftmaxResult::sleef_logarithm:
          e[k] = t[k] - logarithm;
          break;
      }
    }
  }
  return round_values(problem.storage, e, std::span(out, e.size()), options.level);
}

}  // namespace kvsim
