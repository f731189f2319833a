// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/attention/kernel.h"
#include "sim/devices.h"
#include "sim/dispatch_line.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/suggest.h"

namespace kvsim {

/// A linear kernel of the table whose sums have another order.
struct DispatchChoice::OwnedKernel {
  std::string name;
  std::string order;
  std::vector<LinearRule> rules;
  LinearKernel kernel;  // views lead into the members above
};

namespace {

constexpr std::int64_t most_splits = 4096;
constexpr std::int64_t most_multiprocessors = 65536;

constexpr auto format_lines =
    std::to_array<std::string_view>({"format.weights", "format.operands", "format.accumulator",
                                     "format.activations", "format.kv", "format.logits"});

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Error not_accepted(std::string_view line, std::string_view value, std::string_view accepted) {
  return usage(fmt::format("{}={}; accepted: {}", line, value.substr(0, 64), accepted));
}

/// How the names of kernels begin on the device of a dispatch: "h100", "torch-cpu".
std::string_view device_prefix(const Dispatch& row) {
  const auto begins = [](std::string_view name, std::string_view prefix) {
    return name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] == '-';
  };
  for (const std::string_view prefix : {"torch-cpu", "llama.cpp-cpu"}) {
    if (begins(row.norm, prefix)) return prefix;
  }
  for (const devices::Device& device : devices::all) {
    if (begins(row.attention_decode, device.name)) return device.name;
  }
  return {};
}

/// The name itself, or the name on the dispatch's device, or on the first other one that has it;
/// empty where no table row is called so.
template <class Row>
std::string_view resolve(std::span<const Row> rows, const Dispatch& dispatch,
                         std::string_view name) {
  std::vector<std::string_view> prefixes{device_prefix(dispatch)};
  for (const devices::Device& device : devices::all) prefixes.push_back(device.name);
  const auto find = [&](std::string_view wanted) {
    const auto row = std::ranges::find_if(rows, [&](const Row& r) { return r.name == wanted; });
    return row == rows.end() ? std::string_view() : row->name;
  };
  if (const std::string_view whole = find(name); !whole.empty()) return whole;
  for (const std::string_view prefix : prefixes) {
    if (prefix.empty()) continue;
    const std::string_view found = find(fmt::format("{}-{}", prefix, name));
    if (!found.empty()) return found;
  }
  return {};
}

std::string_view hint_for(std::string_view value, const std::vector<std::string_view>& names) {
  return softfloat::nearest(value, names);
}

Error unknown_kernel(std::string_view line, std::string_view value, std::string_view accepted,
                     const std::vector<std::string_view>& names) {
  const std::string_view near = hint_for(value, names);
  return usage(fmt::format("{}={}; accepted: {}: {}{}", line, value.substr(0, 64), accepted,
                           fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

}  // namespace

DispatchChoice::DispatchChoice(const Dispatch& row) : row_(row) {}

Result<DispatchChoice> DispatchChoice::named(std::string_view name) {
  const Result<const Dispatch*> row = find_dispatch(name);
  if (!row) return row.error();
  return DispatchChoice(**row);
}

bool DispatchChoice::is_line(std::string_view line) {
  return line == "dispatch" || line == "multiprocessors" || line == "attention.prefill" ||
         line == "attention.decode" || linear_rows(line) || find_operator_line(line) != nullptr ||
         std::ranges::find(format_lines, line) != format_lines.end();
}

Result<bool> DispatchChoice::set(std::string_view line, std::string_view value) {
  if (line == "dispatch") {
    Result<DispatchChoice> other = named(value);
    if (!other) return other.error();
    *this = std::move(*other);
    return true;
  }
  if (!is_line(line)) {
    std::vector<std::string_view> names{"dispatch",  "multiprocessors",   "linear",
                                        "linear.m1", "attention.prefill", "attention.decode"};
    for (const OperatorLine& each : operator_lines()) names.push_back(each.line);
    names.insert(names.end(), format_lines.begin(), format_lines.end());
    const std::string_view near = softfloat::nearest(line, names);
    return usage(fmt::format("line '{}' of a dispatch; accepted: {}{}", line.substr(0, 64),
                             fmt::join(names, ", "),
                             near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
  }
  if (std::ranges::find(format_lines, line) != format_lines.end()) return set_format(line, value);
  if (row_.arithmetic != DispatchArithmetic::kernels) {
    return usage(fmt::format("{}={}: dispatch {} names no kernels; accepted: another dispatch",
                             line, value.substr(0, 64), row_.name));
  }
  if (line == "multiprocessors") {
    const auto count = whole_number(value, 1, most_multiprocessors);
    if (!count) return not_accepted(line, value, fmt::format("1 to {}", most_multiprocessors));
    row_.multiprocessors = *count;
    return true;
  }
  if (const auto rows = linear_rows(line)) return set_linear(line, *rows, value);
  if (line.starts_with("attention.")) return set_attention(line, value);
  return set_operator(line, value);
}

Result<bool> DispatchChoice::set_all(std::span<const DispatchSetting> settings) {
  DispatchChoice changed = *this;
  for (const bool sets : {true, false}) {
    for (const DispatchSetting& setting : settings) {
      if ((setting.line == "dispatch") != sets) continue;
      Result<bool> done = changed.set(setting.line, setting.value);
      if (!done) return done;
    }
  }
  *this = std::move(changed);
  return true;
}

Result<bool> DispatchChoice::set_attention(std::string_view line, std::string_view value) {
  constexpr std::string_view mark = ".split";
  std::string_view name = value;
  std::int64_t splits = 0;
  std::string_view found = resolve(attention_kernels(), row_, name);
  const std::size_t at = value.rfind(mark);
  if (found.empty() && at != std::string_view::npos) {
    name = value.substr(0, at);
    const auto count = whole_number(value.substr(at + mark.size()), 1, most_splits);
    if (!count) {
      return not_accepted(line, value,
                          fmt::format("KERNEL.splitN with N from 1 to {}", most_splits));
    }
    splits = *count;
    found = resolve(attention_kernels(), row_, name);
  }
  if (found.empty()) {
    return unknown_kernel(line, value, "an attention kernel, or one with .splitN behind it",
                          kernel_names(attention_kernels()));
  }
  const AttentionKernel& kernel = *find_attention_kernel(found);
  const bool can_split =
      kernel.tiles != nullptr && kernel.tiles->split.policy != SplitPolicy::never;
  if (splits > 1 && !can_split) {
    return usage(fmt::format("{}={}: kernel {} does not split the keys; accepted: it alone", line,
                             value.substr(0, 64), found));
  }
  const bool decode = line == "attention.decode";
  (decode ? row_.attention_decode : row_.attention_prefill) = found;
  (decode ? row_.decode_splits : row_.prefill_splits) = splits;
  return true;
}

Result<bool> DispatchChoice::set_operator(std::string_view line, std::string_view value) {
  const OperatorLine& row = *find_operator_line(line);
  const std::vector<std::string_view> names = row.names();
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) return unknown_kernel(line, value, "a kernel of its table", names);
  row_.*row.kernel = *found;
  return true;
}

Result<bool> DispatchChoice::set_format(std::string_view line, std::string_view value) {
  constexpr std::array fields{&DispatchFormats::weights,     &DispatchFormats::operands,
                              &DispatchFormats::accumulator, &DispatchFormats::activations,
                              &DispatchFormats::kv,          &DispatchFormats::logits};
  const auto index =
      static_cast<std::size_t>(std::ranges::find(format_lines, line) - format_lines.begin());
  std::optional<softfloat::Format>& format = row_.formats.*fields[index];
  if (value == "default") {
    format.reset();
    return true;
  }
  const softfloat::NamedFormat* named_format = softfloat::find_format(value);
  if (named_format == nullptr || named_format->format.precision > 24 ||
      !named_format->format.has_zero()) {
    return not_accepted(line, value,
                        "default, or a format whose numbers are all floats: bfloat16, binary16, "
                        "binary32, e4m3, ...");
  }
  format = named_format->format;
  return true;
}

Result<bool> DispatchChoice::set_linear(std::string_view line, const SizeRange& rows,
                                        std::string_view value) {
  LinearChoice changed{rows, resolve(linear_kernels(), row_, value), nullptr};
  std::shared_ptr<OwnedKernel> owned;
  // KERNEL.ORDER: names of kernels may have dots themselves.
  for (std::size_t dot = value.find('.'); changed.kernel.empty() && dot != std::string_view::npos;
       dot = value.find('.', dot + 1)) {
    const std::string_view base = resolve(linear_kernels(), row_, value.substr(0, dot));
    if (base.empty()) continue;
    const Result<Order> order = parse_order(value.substr(dot + 1));
    if (!order) return usage(fmt::format("{}={}: {}", line, value, order.error().message));
    owned = std::make_shared<OwnedKernel>();
    owned->kernel = *find_linear_kernel(base);
    owned->order = to_string(*order);
    owned->name = fmt::format("{}.{}", base, owned->order);
    for (LinearRule rule : owned->kernel.rules) {
      const bool known = std::ranges::any_of(
          owned->rules, [&](const LinearRule& each) { return each.storage == rule.storage; });
      if (known || !check_formats(*order, rule.storage, rule.accumulator)) continue;
      rule.rows = rule.outputs = rule.terms = rule.multiply_adds = {};
      rule.batch_multiply_adds = {};
      rule.order = owned->order;
      rule.edge_order = {};
      rule.edge_outputs = 0;
      rule.second_edge_order = {};
      rule.leading_modulus = 0;
      rule.exchanged = false;
      rule.starts_from_bias = false;
      rule.evidence = softfloat::Evidence::assumed;
      owned->rules.push_back(rule);
    }
    if (owned->rules.empty()) {
      return usage(
          fmt::format("{}={}: no storage format of kernel {} fits the order; accepted: a "
                      "matrix unit for its formats",
                      line, value.substr(0, 64), base));
    }
    owned->kernel.name = owned->name;
    owned->kernel.rules = owned->rules;
    changed.kernel = owned->name;
    changed.own = &owned->kernel;
  }
  if (changed.kernel.empty()) {
    return unknown_kernel(line, value, "a linear kernel, or one with .ORDER behind it",
                          kernel_names(linear_kernels()));
  }
  linear_ = std::make_shared<const std::vector<LinearChoice>>(with_choice(row_.linear, changed));
  row_.linear = *linear_;
  if (owned) owned_kernels_.push_back(std::move(owned));
  return true;
}

}  // namespace kvsim
