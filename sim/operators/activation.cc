// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/elementary.h"
#include "sim/operators/operator_checks.h"
#include "sim/sleef.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr std::string_view torch_cpu_activation =
    "pytorch/pytorch, aten/src/ATen/native/cpu/Activation.cpp";
constexpr std::string_view torch_gpu_silu =
    "pytorch/pytorch, aten/src/ATen/native/cuda/ActivationSiluKernel.cu";
constexpr std::string_view torch_gpu_gelu =
    "pytorch/pytorch, aten/src/ATen/native/cuda/ActivationGeluKernel.cu";
constexpr std::string_view hendrycks =
    "Hendrycks, Gimpel, \"Gaussian Error Linear Units\", 2016, section 2";

constexpr auto rows = std::to_array<ActivationKernel>({
    {.name = "torch-cpu-silu",
     .device = "CPU",
     .exp = ExpModel::sleef_u10,
     .group = 32,
     .tail_exp = ExpModel::libm_expf,
     .source = "pytorch/pytorch, aten/src/ATen/native/cpu/Activation.cpp; replayed on torch 2.11",
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "AVX-512, one thread"},
    {.name = "torch-cpu-avx2-silu",
     .device = "CPU",
     .exp = ExpModel::sleef_u10,
     .group = 16,
     .tail_exp = ExpModel::libm_expf,
     .source = "pytorch/pytorch, aten/src/ATen/native/cpu/Activation.cpp; replayed on torch 2.11",
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "ATEN_CPU_CAPABILITY=avx2"},
    {.name = "torch-cpu-gelu",
     .device = "CPU",
     .function = ActivationFunction::gelu,
     .source = torch_cpu_activation,
     .date = "2.11",
     .evidence = Evidence::assumed,
     .note = "erf taken as correctly rounded"},
    {.name = "torch-cpu-gelu-tanh",
     .device = "CPU",
     .function = ActivationFunction::gelu_tanh,
     .fused = true,
     .tanh = TanhModel::sleef_u10,
     .source = torch_cpu_activation,
     .date = "2.11",
     .evidence = Evidence::measured,
     .note = "the tail's tanhf of glibc, of the last elements of a tensor, is not modelled"},
    {.name = "gpu-silu",
     .device = "GPU",
     .exp = ExpModel::cuda_expf,
     .source = torch_gpu_silu,
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "expf is bounded only"},
    {.name = "gpu-gelu",
     .device = "GPU",
     .function = ActivationFunction::gelu,
     .source = torch_gpu_gelu,
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "erff taken as correctly rounded (2 ulp documented by CUDA)"},
    {.name = "gpu-gelu-tanh",
     .device = "GPU",
     .function = ActivationFunction::gelu_tanh,
     .fused = true,
     .source = torch_gpu_gelu,
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "tanhf taken as correctly rounded (2 ulp documented by CUDA); that the compiler fuses "
             "is assumed"},
    {.name = "control-silu",
     .device = "any",
     .source = "Elfwing, Uchibe, Doya, \"Sigmoid-weighted linear units\", 2017, equation 1",
     .date = "2017",
     .evidence = Evidence::documented,
     .note = "every operation rounded to binary32, correctly rounded exp"},
    {.name = "control-gelu",
     .device = "any",
     .function = ActivationFunction::gelu,
     .source = hendrycks,
     .date = "2016",
     .evidence = Evidence::documented,
     .note = "every operation rounded to binary32, correctly rounded erf"},
    {.name = "control-gelu-tanh",
     .device = "any",
     .function = ActivationFunction::gelu_tanh,
     .source = hendrycks,
     .date = "2016",
     .evidence = Evidence::documented,
     .note = "every operation rounded to binary32, correctly rounded tanh"},
});

void silu(const ActivationKernel& kernel, std::span<const float> x, std::span<float> out,
          const std::optional<ExpFunction>& exp, const EngineOptions& options) {
  const std::size_t whole =
      kernel.group == 0 ? x.size() : x.size() - x.size() % static_cast<std::size_t>(kernel.group);
  std::vector<float> e(x.size());
  std::transform(x.begin(), x.end(), e.begin(), [](float v) { return -v; });
  const std::span<float> body = std::span(e).first(whole);
  const std::span<float> tail = std::span(e).subspan(whole);
  (exp ? *exp : ExpFunction(kernel.exp)).exp(body, body, options.level);
  (exp ? *exp : ExpFunction(kernel.tail_exp)).exp(tail, tail, options.level);
  for (std::size_t i = 0; i < e.size(); ++i) out[i] = x[i] / (1.0F + e[i]);
}

float gelu(float x) {
  constexpr float root_half = 0x1.6a09e6p-1F;
  return x * 0.5F * (1.0F + erf_f32(x * root_half));
}

float gelu_tanh(float x, const ActivationKernel& kernel) {
  constexpr float root_two_over_pi = 0x1.988454p-1F;
  constexpr float kappa = 0.044715F;
  const float cube = x * x * x;
  const float sum = kernel.fused ? std::fma(kappa, cube, x) : x + kappa * cube;
  const float argument = root_two_over_pi * sum;
  const float tangent =
      kernel.tanh == TanhModel::sleef_u10 ? sleef_tanh_u10(argument) : tanh_f32(argument);
  return 0.5F * x * (1.0F + tangent);
}

}  // namespace

std::string_view to_string(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::silu:
      return "silu";
    case ActivationFunction::gelu:
      return "gelu";
    case ActivationFunction::gelu_tanh:
      break;
  }
  return "gelu-tanh";
}

std::span<const ActivationKernel> activation_kernels() { return rows; }

const ActivationKernel* find_activation_kernel(std::string_view name) {
  return operators::find_row(activation_kernels(), name);
}

Result<bool> apply_activation(const ActivationKernel& kernel, const softfloat::Format& storage,
                              std::span<const float> x, std::span<float> out,
                              const std::optional<ExpFunction>& exp, const EngineOptions& options) {
  if (x.size() != out.size()) {
    return Error{ErrorKind::usage, fmt::format("{}: {} results for {} elements: one for each",
                                               kernel.name, out.size(), x.size())};
  }
  switch (kernel.function) {
    case ActivationFunction::silu:
      silu(kernel, x, out, exp, options);
      break;
    case ActivationFunction::gelu:
      std::transform(x.begin(), x.end(), out.begin(), gelu);
      break;
    case ActivationFunction::gelu_tanh:
      std::transform(x.begin(), x.end(), out.begin(),
                     [&](float v) { return gelu_tanh(v, kernel); });
      break;
  }
  return round_values(storage, out, out, options.level);
}

}  // namespace kvsim
