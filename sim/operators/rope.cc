// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/elementary.h"
#include "sim/operators/operator_checks.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

using softfloat::binary16;
using softfloat::binary32;
using softfloat::Evidence;
using softfloat::Format;

constexpr std::int64_t most_entries = std::int64_t{1} << 30;

constexpr auto rows = std::to_array<RopeKernel>({
    {.name = "transformers-rope",
     .device = "any",
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .arithmetic = RopeArithmetic::storage_steps,
     .source = "huggingface/transformers, models/llama/modeling_llama.py, LlamaRotaryEmbedding, "
               "apply_rotary_pos_emb",
     .date = "2025",
     .evidence = Evidence::documented,
     .note = "pow, cos and sin taken as correctly rounded: PyTorch's may be 1 ulp off"},
    {.name = "gpu-rope",
     .device = "GPU",
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .table = binary32,
     .arithmetic = RopeArithmetic::fused,
     .source = "flashinfer-ai/flashinfer, include/flashinfer/pos_enc.cuh",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "float32 table; that the compiler fuses the second product is assumed"},
    {.name = "gpu-rope-interleaved",
     .device = "GPU",
     .pairs = RopePairs::interleaved,
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .table = binary32,
     .arithmetic = RopeArithmetic::fused,
     .source = "flashinfer-ai/flashinfer, include/flashinfer/pos_enc.cuh",
     .date = "2025",
     .evidence = Evidence::assumed,
     .note = "float32 table; that the compiler fuses the second product is assumed"},
    {.name = "ggml-rope",
     .device = "CPU",
     .pairs = RopePairs::interleaved,
     .frequencies = RopeFrequencies::repeated_product,
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .table = binary32,
     .arithmetic = RopeArithmetic::rounded_once,
     .source = "ggml-org/llama.cpp, ggml/src/ggml-cpu/ops.cpp, ggml_rope_cache_init",
     .date = "2025",
     .evidence = Evidence::inferred,
     .note = "powf, cosf and sinf taken as correctly rounded"},
    {.name = "half-table-rope",
     .device = "any",
     .frequency = binary16,
     .position = binary16,
     .angle = binary16,
     .table = binary16,
     .arithmetic = RopeArithmetic::storage_steps,
     .source = "EleutherAI/gpt-neox, issue 1003: frequencies, positions and angles in binary16",
     .date = "2023",
     .evidence = Evidence::inferred,
     .note = "what goes wrong from position 1024 on; positions are exact up to 2048 only"},
    {.name = "control-rope",
     .device = "any",
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .table = binary32,
     .arithmetic = RopeArithmetic::rounded_once,
     .source = "Su et al., \"RoFormer\", 2021, section 3.2.2",
     .date = "2021",
     .evidence = Evidence::documented,
     .note = "binary32 throughout, correctly rounded functions, rounded to storage at the end"},
    {.name = "control-rope-interleaved",
     .device = "any",
     .pairs = RopePairs::interleaved,
     .frequency = binary32,
     .position = binary32,
     .angle = binary32,
     .table = binary32,
     .arithmetic = RopeArithmetic::rounded_once,
     .source = "Su et al., \"RoFormer\", 2021, section 3.2.2",
     .date = "2021",
     .evidence = Evidence::documented,
     .note = "binary32 throughout, correctly rounded functions, rounded to storage at the end"},
});

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// Rounds in place; formats of rows and of checked problems are all floats.
void round(const Format& format, std::span<float> values) {
  if (format == binary32) return;
  static_cast<void>(round_values(format, values, values));
}

Result<bool> check(const RopeKernel& kernel, const RopeTableProblem& problem) {
  if (problem.rotated < 0 || problem.rotated % 2 != 0 || problem.positions < 0) {
    return usage(
        fmt::format("{}: {} rotated channels and {} positions: an even number and 0 or "
                    "more are accepted",
                    kernel.name, problem.rotated, problem.positions));
  }
  if (problem.rotated > 0 && problem.positions > most_entries / problem.rotated) {
    return usage(fmt::format("{}: {} rotated channels × {} positions: at most 2^30 are accepted",
                             kernel.name, problem.rotated, problem.positions));
  }
  if (!(problem.base > 0 && problem.base <= 0x1p100)) {
    return usage(
        fmt::format("{}: base {}: accepted are 0 < base ≤ 2^100", kernel.name, problem.base));
  }
  const auto pairs = static_cast<std::uint64_t>(problem.rotated / 2);
  if (!problem.custom_frequencies.empty() && problem.custom_frequencies.size() != pairs) {
    return usage(fmt::format("{}: {} frequencies for {} pairs of channels", kernel.name,
                             problem.custom_frequencies.size(), pairs));
  }
  return true;
}

/// The frequencies of all pairs in binary32. With RopeFrequencies::repeated_product the first entry
/// is the factor s.
std::vector<float> frequencies(const RopeKernel& kernel, const RopeTableProblem& problem) {
  if (!problem.custom_frequencies.empty())
    return {problem.custom_frequencies.begin(), problem.custom_frequencies.end()};
  const auto d = static_cast<float>(problem.rotated);
  const auto base = static_cast<float>(problem.base);
  if (kernel.frequencies == RopeFrequencies::repeated_product) return {pow_f32(base, -2.0F / d)};
  std::vector<float> result(index(problem.rotated / 2));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = 1.0F / pow_f32(base, static_cast<float>(2 * i) / d);
  return result;
}

}  // namespace

std::span<const RopeKernel> rope_kernels() { return rows; }

const RopeKernel* find_rope_kernel(std::string_view name) {
  return operators::find_row(rope_kernels(), name);
}

Result<RopeTable> make_rope_table(const RopeKernel& kernel, const RopeTableProblem& problem) {
  Result<bool> checked = check(kernel, problem);
  if (!checked) return checked.error();
  RopeTable table;
  table.positions = problem.positions;
  table.pairs = problem.rotated / 2;
  std::vector<float> frequency = frequencies(kernel, problem);
  round(kernel.frequency, frequency);
  std::vector<float> position(index(problem.positions));
  for (std::size_t p = 0; p < position.size(); ++p) position[p] = static_cast<float>(p);
  round(kernel.position, position);

  const std::size_t pairs = index(table.pairs);
  const bool repeated =
      kernel.frequencies == RopeFrequencies::repeated_product && problem.custom_frequencies.empty();
  table.angle.resize(position.size() * pairs);
  for (std::size_t p = 0; p < position.size(); ++p) {
    float running = position[p];
    for (std::size_t i = 0; i < pairs; ++i) {
      table.angle[p * pairs + i] = repeated ? running : position[p] * frequency[i];
      if (repeated) running *= frequency[0];
    }
  }
  round(kernel.angle, table.angle);
  table.cosine.resize(table.angle.size());
  table.sine.resize(table.angle.size());
  for (std::size_t i = 0; i < table.angle.size(); ++i) {
    table.cosine[i] = cos_f32(table.angle[i]);
    table.sine[i] = sin_f32(table.angle[i]);
  }
  const Format& format = kernel.table ? *kernel.table : problem.storage;
  for (std::vector<float>* values : {&table.cosine, &table.sine}) {
    Result<bool> rounded = round_values(format, *values, *values);
    if (!rounded) return rounded.error();
  }
  return table;
}

Result<bool> apply_rope(const RopeKernel& kernel, const RopeTable& table,
                        const RopeProblem& problem, float* out, const EngineOptions& options) {
  Result<bool> sizes = operators::check_sizes(kernel.name, problem.heads, problem.length);
  if (!sizes) return sizes;
  if (problem.head_dim < 2 * table.pairs || problem.first_position < 0 ||
      problem.length > table.positions - problem.first_position) {
    return usage(fmt::format(
        "{}: {} channels at positions {} to {}: the table has {} pairs and {} positions",
        kernel.name, problem.head_dim, problem.first_position,
        problem.first_position + problem.length - 1, table.pairs, table.positions));
  }
  const bool half = kernel.pairs == RopePairs::half_split;
  const std::size_t pairs = index(table.pairs);
  const std::size_t row = index(problem.head_dim);
  const std::size_t rotations = index(problem.heads * problem.length) * pairs;
  // For each rotated element: the product that is added last, then the other one.
  std::vector<float> first(2 * rotations), second(2 * rotations);
  const auto for_each_pair = [&](const auto& work) {
    std::size_t n = 0;
    for (std::int64_t r = 0; r < problem.heads * problem.length; ++r) {
      const std::size_t entry = index(problem.first_position + r % problem.length) * pairs;
      for (std::size_t i = 0; i < pairs; ++i, n += 2) {
        const std::size_t x = index(r) * row + (half ? i : 2 * i);
        work(n, x, half ? x + pairs : x + 1, entry + i);
      }
    }
  };
  // x cos − y sin and y cos + x sin; the sign goes with the product.
  for_each_pair([&](std::size_t n, std::size_t x, std::size_t y, std::size_t entry) {
    const float a = problem.x[x];
    const float b = problem.x[y];
    second[n] = -(b * table.sine[entry]);
    second[n + 1] = a * table.sine[entry];
    if (kernel.arithmetic == RopeArithmetic::fused) {
      first[n] = std::fma(a, table.cosine[entry], second[n]);
      first[n + 1] = std::fma(b, table.cosine[entry], second[n + 1]);
    } else {
      first[n] = a * table.cosine[entry];
      first[n + 1] = b * table.cosine[entry];
    }
  });
  if (kernel.arithmetic == RopeArithmetic::storage_steps) {
    for (std::vector<float>* products : {&first, &second}) {
      Result<bool> rounded = round_values(problem.storage, *products, *products, options.level);
      if (!rounded) return rounded;
    }
  }
  if (kernel.arithmetic != RopeArithmetic::fused) {
    for (std::size_t n = 0; n < first.size(); ++n) first[n] += second[n];
  }
  Result<bool> rounded = round_values(problem.storage, first, first, options.level);
  if (!rounded) return rounded;
  if (out != problem.x) std::copy_n(problem.x, index(problem.heads * problem.length) * row, out);
  for_each_pair([&](std::size_t n, std::size_t x, std::size_t y, std::size_t) {
    out[x] = first[n];
    out[y] = first[n + 1];
  });
  return true;
}

}  // namespace kvsim
