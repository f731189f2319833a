// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "sim/operators/operator_checks.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr auto rows = std::to_array<ResidualKernel>({
    {.name = "storage-residual",
     .device = "any",
     .source = "huggingface/transformers, models/llama/modeling_llama.py, LlamaDecoderLayer",
     .date = "2025",
     .evidence = Evidence::documented,
     .note = "added in binary32, rounded to storage after every block"},
    {.name = "float32-residual",
     .device = "any",
     .stream = softfloat::binary32,
     .source = "a residual stream kept in float32",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "a control: what storage rounding of the stream costs"},
});

Result<bool> check_lengths(std::span<const float> x, std::span<const float> y,
                           std::span<const float> out) {
  if (x.size() == y.size() && x.size() == out.size()) return true;
  return Error{ErrorKind::usage, fmt::format("{} and {} elements give {} results: equal numbers "
                                             "are needed",
                                             x.size(), y.size(), out.size())};
}

}  // namespace

std::span<const ResidualKernel> residual_kernels() { return rows; }

const ResidualKernel* find_residual_kernel(std::string_view name) {
  return operators::find_row(residual_kernels(), name);
}

Result<bool> add_residual(const ResidualKernel& kernel, const softfloat::Format& storage,
                          std::span<const float> x, std::span<const float> y, std::span<float> out,
                          const EngineOptions& options) {
  Result<bool> lengths = check_lengths(x, y, out);
  if (!lengths) return lengths;
  std::transform(x.begin(), x.end(), y.begin(), out.begin(), std::plus<>());
  return round_values(kernel.stream ? *kernel.stream : storage, out, out, options.level);
}

Result<bool> multiply_elements(const softfloat::Format& storage, std::span<const float> x,
                               std::span<const float> y, std::span<float> out,
                               const EngineOptions& options) {
  Result<bool> lengths = check_lengths(x, y, out);
  if (!lengths) return lengths;
  std::transform(x.begin(), x.end(), y.begin(), out.begin(), std::multiplies<>());
  return round_values(storage, out, out, options.level);
}

}  // namespace kvsim
