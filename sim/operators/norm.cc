// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/norm.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/elementary.h"
#include "sim/operators/operator_checks.h"
#include "sim/operators/row_sums.h"
#include "sim/order.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr std::string_view transformers_llama =
    "huggingface/transformers, models/llama/modeling_llama.py, LlamaRMSNorm";
constexpr std::string_view triton_block_sum =
    "blocks(1024,init=zero)/split(4,multiple=256,merge=butterfly)/"
    "split(32,multiple=8,merge=butterfly)";

constexpr auto rows = std::to_array<NormKernel>({
    {.name = "torch-cpu-rms",
     .device = "CPU",
     .order = "torch-cascade(8)",
     .source = "huggingface/transformers, models/llama/modeling_llama.py, LlamaRMSNorm; "
               "pytorch/pytorch, aten/src/ATen/native/cpu/SumKernel.cpp; replayed on torch 2.11",
     .date = "2.11",
     .evidence = Evidence::measured},
    {.name = "torch-cpu-rms-gemma",
     .device = "CPU",
     .order = "torch-cascade(8)",
     .weight = WeightRule::plus_one,
     .source = "huggingface/transformers, models/gemma2/modeling_gemma2.py, Gemma2RMSNorm; "
               "the sums as in torch-cpu-rms",
     .date = "2.11",
     .evidence = Evidence::inferred},
    {.name = "gpu-rms",
     .device = "GPU",
     .order = "lanes(1024,1,join=butterfly)",
     .source = transformers_llama,
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "the order of the GPU's reduction is assumed: one block of 1024 threads"},
    {.name = "gpu-rms-gemma",
     .device = "GPU",
     .order = "lanes(1024,1,join=butterfly)",
     .weight = WeightRule::plus_one,
     .source = "huggingface/transformers, models/gemma2/modeling_gemma2.py, Gemma2RMSNorm",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "the order of the GPU's reduction is assumed: one block of 1024 threads"},
    {.name = "gpu-rms-fused",
     .device = "GPU",
     .order = "lanes(1024,1,join=butterfly)",
     .product = Product::fused,
     .root = RootRule::one_rounding,
     .source = "vllm-project/vllm, csrc/layernorm_kernels.cu, rms_norm_kernel",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "block reduction by cub in an assumed order; rsqrtf taken as correctly rounded (2 ulp "
             "documented)"},
    {.name = "batch-invariant-rms",
     .device = "GPU",
     .order = triton_block_sum,
     .source = "thinking-machines-lab/batch_invariant_ops, mean: blocks of 1024",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "the order within a block is assumed: 128 threads of 8 elements, xor trees"},
    {.name = "control-rms",
     .device = "any",
     .order = "sequential",
     .source = "Zhang, Sennrich, \"Root Mean Square Layer Normalization\", 2019, equation 4",
     .date = "2019",
     .evidence = Evidence::documented,
     .note = "term by term, every operation rounded to binary32"},
    {.name = "control-rms-gemma",
     .device = "any",
     .order = "sequential",
     .weight = WeightRule::plus_one,
     .source = "huggingface/transformers, models/gemma2/modeling_gemma2.py, Gemma2RMSNorm",
     .date = "2025",
     .evidence = Evidence::documented,
     .note = "term by term, every operation rounded to binary32"},
    {.name = "control-rms-exact",
     .device = "any",
     .order = "exact",
     .product = Product::fused,
     .root = RootRule::one_rounding,
     .source = "control",
     .date = "2026",
     .evidence = Evidence::documented,
     .note = "the exact sum of squares, rounded once to binary32; then as control-rms"},
    {.name = "control-rms-exact-gemma",
     .device = "any",
     .order = "exact",
     .product = Product::fused,
     .root = RootRule::one_rounding,
     .weight = WeightRule::plus_one,
     .source = "control",
     .date = "2026",
     .evidence = Evidence::documented,
     .note = "the exact sum of squares, rounded once to binary32; then as control-rms-gemma"},
    {.name = "llama.cpp-cpu-rms",
     .device = "CPU",
     .order = "exact",
     .source = "ggml-org/llama.cpp, ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_rms_norm_f32",
     .date = "2026-08",
     .evidence = Evidence::inferred,
     .note = "its binary64 sum of rounded squares taken as exact"},
    {.name = "llama.cpp-cpu-rms-gemma",
     .device = "CPU",
     .order = "exact",
     .weight = WeightRule::plus_one,
     .source = "ggml-org/llama.cpp, ggml/src/ggml-cpu/ops.cpp, ggml_compute_forward_rms_norm_f32",
     .date = "2026-08",
     .evidence = Evidence::inferred,
     .note = "its binary64 sum of rounded squares taken as exact; its files hold 1 + weight"},
    {.name = "gpu-layer",
     .device = "GPU",
     .kind = NormKind::layer,
     .order = "lanes(1024,1,join=butterfly)",
     .root = RootRule::one_rounding,
     .weight = WeightRule::before_rounding,
     .source = "Ba, Kiros, Hinton, \"Layer Normalization\", 2016, equation 4",
     .date = "2016",
     .evidence = Evidence::assumed,
     .note = "two passes in an assumed order; PyTorch's own kernel merges Welford moments"},
    {.name = "control-layer",
     .device = "any",
     .kind = NormKind::layer,
     .order = "sequential",
     .weight = WeightRule::before_rounding,
     .source = "Ba, Kiros, Hinton, \"Layer Normalization\", 2016, equation 4",
     .date = "2016",
     .evidence = Evidence::documented,
     .note = "two passes, term by term, every operation rounded to binary32"},
});

std::size_t size_of(std::int64_t rows_count, std::int64_t columns) {
  return static_cast<std::size_t>(rows_count * columns);
}

/// Sums of rows, divided by their length.
Result<std::vector<float>> means(const Order& order, Product product, const NormProblem& problem,
                                 const float* a, const float* b, const EngineOptions& options) {
  std::vector<float> result(static_cast<std::size_t>(problem.rows));
  Result<bool> summed =
      sum_rows({order, product, problem.rows, problem.columns, a, b}, result.data(), options);
  if (!summed) return summed.error();
  for (float& x : result) x /= static_cast<float>(problem.columns);
  return result;
}

}  // namespace

std::span<const NormKernel> norm_kernels() { return rows; }

const NormKernel* find_norm_kernel(std::string_view name) {
  return operators::find_row(norm_kernels(), name);
}

Result<bool> apply_norm(const NormKernel& kernel, const NormProblem& problem, float* out,
                        const EngineOptions& options) {
  Result<bool> sizes = operators::check_sizes(kernel.name, problem.rows, problem.columns);
  if (!sizes) return sizes;
  const Result<Order> order = parse_order(kernel.order);
  if (!order) return order.error();
  const std::size_t columns = static_cast<std::size_t>(problem.columns);
  std::vector<float> y(problem.x, problem.x + size_of(problem.rows, problem.columns));
  if (y.empty()) return true;

  if (kernel.kind == NormKind::layer) {
    const auto mean = means(*order, kernel.product, problem, y.data(), nullptr, options);
    if (!mean) return mean.error();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= (*mean)[i / columns];
  }
  const auto variance = means(*order, kernel.product, problem, y.data(), y.data(), options);
  if (!variance) return variance.error();
  for (std::size_t i = 0; i < variance->size(); ++i) {
    const float v = (*variance)[i] + static_cast<float>(problem.epsilon);
    const float r = kernel.root == RootRule::one_over_root ? 1.0F / std::sqrt(v) : rsqrt_f32(v);
    for (std::size_t k = 0; k < columns; ++k) y[i * columns + k] *= r;
  }

  if (kernel.weight == WeightRule::after_rounding) {
    Result<bool> rounded = round_values(problem.storage, y, y, options.level);
    if (!rounded) return rounded;
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t k = i % columns;
    if (problem.weight != nullptr) {
      const float w = problem.weight[k];
      y[i] *= kernel.weight == WeightRule::plus_one ? 1.0F + w : w;
    }
    if (problem.bias != nullptr) y[i] += problem.bias[k];
  }
  return round_values(problem.storage, y, std::span(out, y.size()), options.level);
}

}  // namespace kvsim
