// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sim/devices.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// One row: a kernel for vectors. Up to 64 rows, one tile high: K is split to fill the device.
#define KVSIM_LINEAR_CHOICES(device) \
  std::to_array<LinearChoice>(       \
      {{{1, 1}, device "-gemv"}, {{2, 64}, device "-splitk"}, {{65, unlimited}, device "-gemm"}})
constexpr auto v100_linear = KVSIM_LINEAR_CHOICES("v100");
constexpr auto a100_linear = KVSIM_LINEAR_CHOICES("a100");
constexpr auto h100_linear = KVSIM_LINEAR_CHOICES("h100");
constexpr auto b200_linear = KVSIM_LINEAR_CHOICES("b200");
constexpr auto mi300_linear = KVSIM_LINEAR_CHOICES("mi300");
#undef KVSIM_LINEAR_CHOICES
constexpr auto cpu_linear = std::to_array<LinearChoice>({{{1, unlimited}, "torch-cpu-linear"}});
constexpr auto invariant_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "h100-batch-invariant"}});

constexpr auto exact_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "control-linear-exact"}});

constexpr std::string_view assumed_linear =
    "attention: the device's usual kernel; linear rows are CUTLASS-style and assumed, as is the "
    "choice among them by the number of rows";

constexpr Dispatch gpu(std::string_view name, std::string_view description,
                       const devices::Device& device, std::span<const LinearChoice> linear,
                       std::string_view attention) {
  return {.name = name,
          .description = description,
          .multiprocessors = device.multiprocessors,
          .linear = linear,
          .attention_prefill = attention,
          .attention_decode = attention,
          .norm = "gpu-rms",
          .norm_plus_one = "gpu-rms-gemma",
          .softmax = "gpu-softmax",
          .log_softmax = "gpu-log-softmax",
          .rope = "gpu-rope",
          .silu = "gpu-silu",
          .gelu = "gpu-gelu",
          .gelu_tanh = "gpu-gelu-tanh",
          .residual = "storage-residual",
          .source = assumed_linear};
}

constexpr Dispatch batch_invariant() {
  Dispatch row = gpu("batch-invariant",
                     "NVIDIA H100 with batch-invariant kernels: no split of K or of the keys",
                     devices::h100, invariant_linear, "h100-fa3");
  row.attention_splits = 1;
  row.norm = "batch-invariant-rms";
  row.log_softmax = "batch-invariant-log-softmax";
  row.source =
      "thinking-machines-lab/batch_invariant_ops (read 2026-08) for linear layers, norm and "
      "log-softmax; num_splits = 1 for attention";
  row.evidence = Evidence::inferred;
  return row;
}

constexpr Dispatch cpu() {
  return {.name = "cpu",
          .description = "PyTorch 2.11 on a CPU with AVX-512, one thread",
          .linear = cpu_linear,
          .attention_prefill = "torch-cpu",
          .attention_decode = "torch-cpu",
          .norm = "torch-cpu-rms",
          .norm_plus_one = "torch-cpu-rms-gemma",
          .softmax = "torch-cpu-softmax",
          .log_softmax = "torch-cpu-log-softmax",
          .rope = "transformers-rope",
          .silu = "torch-cpu-silu",
          .gelu = "torch-cpu-gelu",
          .gelu_tanh = "torch-cpu-gelu-tanh",
          .residual = "storage-residual",
          .source = "PyTorch 2.11.0 from PyPI, AMD Zen 4: revealed and replayed, 2026",
          .evidence = Evidence::measured};
}

constexpr Dispatch exact() {
  Dispatch row = gpu("exact", "exact sums in linear layers, norms and attention, storage as usual",
                     devices::any, exact_linear, {});
  row.multiprocessors = 1;
  row.arithmetic = DispatchArithmetic::exact;
  row.source = "control";
  row.evidence = Evidence::documented;
  return row;
}

constexpr Dispatch binary64() {
  return {.name = "binary64",
          .description = "binary64 throughout, nothing rounded to storage",
          .arithmetic = DispatchArithmetic::binary64,
          .source = "control",
          .evidence = Evidence::documented};
}

constexpr auto dispatch_rows = std::to_array<Dispatch>({
    gpu("h100", "NVIDIA H100 SXM", devices::h100, h100_linear, "h100-fa3"),
    gpu("a100", "NVIDIA A100", devices::a100, a100_linear, "a100-fa2"),
    gpu("v100", "NVIDIA V100", devices::v100, v100_linear, "v100-eager"),
    gpu("b200", "NVIDIA B200", devices::b200, b200_linear, "b200-fa4"),
    gpu("mi300", "AMD MI300X", devices::mi300, mi300_linear, "mi300-fa2"),
    cpu(),
    batch_invariant(),
    exact(),
    binary64(),
});

constexpr auto names = [] {
  std::array<std::string_view, dispatch_rows.size()> list{};
  for (std::size_t i = 0; i < dispatch_rows.size(); ++i) list[i] = dispatch_rows[i].name;
  return list;
}();

std::string rows_text(const SizeRange& range) {
  if (range.most == unlimited) {
    return range.least == 1 ? "any rows" : fmt::format("{} rows or more", range.least);
  }
  if (range.least == range.most) {
    return fmt::format("{} row{}", range.least, range.least == 1 ? "" : "s");
  }
  return fmt::format("{} to {} rows", range.least, range.most);
}

}  // namespace

std::span<const Dispatch> dispatches() { return dispatch_rows; }

Result<const Dispatch*> find_dispatch(std::string_view name) {
  for (const Dispatch& row : dispatch_rows) {
    if (row.name == name) return &row;
  }
  const std::string_view near = softfloat::nearest(name, names);
  return Error{
      ErrorKind::usage,
      fmt::format("dispatch '{}'; accepted: {}{}", name.substr(0, 64), fmt::join(names, ", "),
                  near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

Result<const LinearKernel*> linear_kernel_for(const Dispatch& dispatch, std::int64_t rows) {
  for (const LinearChoice& choice : dispatch.linear) {
    if (!choice.rows.contains(rows)) continue;
    const LinearKernel* kernel = find_linear_kernel(choice.kernel);
    if (kernel != nullptr) return kernel;
  }
  return Error{ErrorKind::usage, fmt::format("dispatch {} has no kernel for a linear layer of {} "
                                             "rows; accepted: a dispatch that names kernels",
                                             dispatch.name, rows)};
}

std::vector<DispatchLine> dispatch_lines(const Dispatch& dispatch) {
  if (dispatch.arithmetic != DispatchArithmetic::kernels) {
    return {{"every operator", std::string(dispatch.description)}};
  }
  std::vector<DispatchLine> lines;
  const auto add = [&](std::string operation, std::string_view kernel) {
    lines.push_back({std::move(operation), std::string(kernel)});
  };
  add("multiprocessors", std::to_string(dispatch.multiprocessors));
  add("norm", dispatch.norm);
  add("norm by 1 + weight", dispatch.norm_plus_one);
  for (const LinearChoice& choice : dispatch.linear) {
    add(fmt::format("linear, {}", rows_text(choice.rows)), choice.kernel);
  }
  add("rope", dispatch.rope);
  add("attention, prefill", dispatch.attention_prefill);
  add("attention, decode", dispatch.attention_decode);
  add("attention splits", dispatch.attention_splits == 0
                              ? "as the kernel chooses"
                              : std::to_string(dispatch.attention_splits));
  add("silu", dispatch.silu);
  add("gelu", dispatch.gelu);
  add("gelu_tanh", dispatch.gelu_tanh);
  add("residual", dispatch.residual);
  add("softmax", dispatch.softmax);
  add("log-softmax", dispatch.log_softmax);
  return lines;
}

std::string to_text(const Dispatch& dispatch) {
  std::string text = fmt::format("{}: {}\n", dispatch.name, dispatch.description);
  for (const DispatchLine& line : dispatch_lines(dispatch)) {
    text += fmt::format("  {:<24}{}\n", line.operation, line.kernel);
  }
  return text;
}

std::string diff_text(const Dispatch& first, const Dispatch& second) {
  const std::vector<DispatchLine> before = dispatch_lines(first);
  const std::vector<DispatchLine> after = dispatch_lines(second);
  const auto kernel_of = [](const std::vector<DispatchLine>& lines, std::string_view operation) {
    const auto line = std::ranges::find(lines, operation, &DispatchLine::operation);
    return line == lines.end() ? std::string_view() : std::string_view(line->kernel);
  };
  std::string text;
  const auto add = [&](char sign, const DispatchLine& line) {
    text += fmt::format("{} {}: {}\n", sign, line.operation, line.kernel);
  };
  for (const DispatchLine& line : before) {
    const std::string_view other = kernel_of(after, line.operation);
    if (other == line.kernel) continue;
    add('-', line);
    if (!other.empty()) add('+', {line.operation, std::string(other)});
  }
  for (const DispatchLine& line : after) {
    if (kernel_of(before, line.operation).empty()) add('+', line);
  }
  return text;
}

}  // namespace kvsim
