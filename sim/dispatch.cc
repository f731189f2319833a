// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "softfloat/formats.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

/// "linear.m1", "linear.m2-64", "linear.m65+", or "linear" for every number of rows.
std::string linear_line(const SizeRange& range) {
  if (range.most == std::numeric_limits<std::int64_t>::max()) {
    return range.least == 1 ? "linear" : fmt::format("linear.m{}+", range.least);
  }
  if (range.least == range.most) return fmt::format("linear.m{}", range.least);
  return fmt::format("linear.m{}-{}", range.least, range.most);
}

std::string attention_text(std::string_view kernel, std::int64_t splits) {
  return splits == 0 ? std::string(kernel) : fmt::format("{}.split{}", kernel, splits);
}

std::string_view format_text(const std::optional<softfloat::Format>& format) {
  return format ? softfloat::format_name(*format) : "default";
}

}  // namespace

Result<const Dispatch*> find_dispatch(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Dispatch& row : dispatches()) {
    if (row.name == name || (!name.empty() && row.other_name == name)) return &row;
    names.push_back(row.name);
    if (!row.other_name.empty()) names.push_back(row.other_name);
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
    const LinearKernel* kernel =
        choice.own != nullptr ? choice.own : find_linear_kernel(choice.kernel);
    if (kernel != nullptr) return kernel;
  }
  return Error{ErrorKind::usage, fmt::format("dispatch {} has no kernel for a linear layer of {} "
                                             "rows; accepted: a dispatch that names kernels",
                                             dispatch.name, rows)};
}

std::vector<DispatchLine> dispatch_lines(const Dispatch& dispatch) {
  std::vector<DispatchLine> lines;
  const auto add = [&](std::string operation, std::string_view kernel) {
    lines.push_back({std::move(operation), std::string(kernel)});
  };
  if (dispatch.arithmetic != DispatchArithmetic::kernels) {
    add("every operator", dispatch.description);
    return lines;
  }
  add("multiprocessors", std::to_string(dispatch.multiprocessors));
  add("norm", dispatch.norm);
  add("norm.plus-one", dispatch.norm_plus_one);
  for (const LinearChoice& choice : dispatch.linear) add(linear_line(choice.rows), choice.kernel);
  add("rope", dispatch.rope);
  add("attention.prefill", attention_text(dispatch.attention_prefill, dispatch.prefill_splits));
  add("attention.decode", attention_text(dispatch.attention_decode, dispatch.decode_splits));
  add("silu", dispatch.silu);
  add("gelu", dispatch.gelu);
  add("gelu-tanh", dispatch.gelu_tanh);
  add("residual", dispatch.residual);
  add("softmax", dispatch.softmax);
  add("log-softmax", dispatch.log_softmax);
  add("format.weights", format_text(dispatch.formats.weights));
  add("format.operands", format_text(dispatch.formats.operands));
  add("format.accumulator", format_text(dispatch.formats.accumulator));
  add("format.activations", format_text(dispatch.formats.activations));
  add("format.kv", format_text(dispatch.formats.kv));
  add("format.logits", format_text(dispatch.formats.logits));
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
