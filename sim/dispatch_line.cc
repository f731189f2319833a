// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"
#include "sim/operators/softmax.h"

namespace kvsim {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

template <class Row, class Accepts>
std::vector<std::string_view> names_of(std::span<const Row> rows, const Accepts& accepts) {
  std::vector<std::string_view> names;
  names.reserve(rows.size());
  for (const Row& row : rows) {
    if (accepts(row)) names.push_back(row.name);
  }
  return names;
}

std::vector<std::string_view> rms_norms(bool plus_one) {
  return names_of(norm_kernels(), [&](const NormKernel& row) {
    return row.kind == NormKind::rms && (row.weight == WeightRule::plus_one) == plus_one;
  });
}

std::vector<std::string_view> softmaxes(bool logarithm) {
  return names_of(softmax_kernels(), [&](const SoftmaxKernel& row) {
    return takes_logarithm(row.result) == logarithm;
  });
}

std::vector<std::string_view> activations(ActivationFunction function) {
  return names_of(activation_kernels(),
                  [&](const ActivationKernel& row) { return row.function == function; });
}

const std::array lines{
    OperatorLine{"norm", &Dispatch::norm, [] { return rms_norms(false); }},
    OperatorLine{"norm.plus-one", &Dispatch::norm_plus_one, [] { return rms_norms(true); }},
    OperatorLine{"softmax", &Dispatch::softmax, [] { return softmaxes(false); }},
    OperatorLine{"log-softmax", &Dispatch::log_softmax, [] { return softmaxes(true); }},
    OperatorLine{"rope", &Dispatch::rope, [] { return kernel_names(rope_kernels()); }},
    OperatorLine{"silu", &Dispatch::silu, [] { return activations(ActivationFunction::silu); }},
    OperatorLine{"gelu", &Dispatch::gelu, [] { return activations(ActivationFunction::gelu); }},
    OperatorLine{"gelu-tanh", &Dispatch::gelu_tanh,
                 [] { return activations(ActivationFunction::gelu_tanh); }},
    OperatorLine{"residual", &Dispatch::residual, [] { return kernel_names(residual_kernels()); }},
};

}  // namespace

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least,
                                         std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

std::span<const OperatorLine> operator_lines() { return lines; }

const OperatorLine* find_operator_line(std::string_view line) {
  const auto* const found = std::ranges::find(lines, line, &OperatorLine::line);
  return found == lines.end() ? nullptr : found;
}

std::optional<SizeRange> linear_rows(std::string_view line) {
  constexpr std::string_view any = "linear";
  constexpr std::string_view some = "linear.m";
  if (line == any) return SizeRange{1, unlimited};
  if (!line.starts_with(some)) return std::nullopt;
  const std::string_view text = line.substr(some.size());
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto least = whole_number(text.substr(0, dash), 1, unlimited);
    const auto most = whole_number(text.substr(dash + 1), 1, unlimited);
    if (!least || !most || *most < *least) return std::nullopt;
    return SizeRange{*least, *most};
  }
  const bool open = text.ends_with('+');
  const auto least = whole_number(open ? text.substr(0, text.size() - 1) : text, 1, unlimited);
  if (!least) return std::nullopt;
  return SizeRange{*least, open ? unlimited : *least};
}

std::vector<LinearChoice> with_choice(std::span<const LinearChoice> choices,
                                      const LinearChoice& changed) {
  std::vector<LinearChoice> result;
  result.reserve(choices.size() + 2);
  const auto add = [&](LinearChoice choice, std::int64_t least, std::int64_t most) {
    choice.rows = {least, most};
    if (least <= most) result.push_back(choice);
  };
  bool placed = false;
  for (const LinearChoice& choice : choices) {
    const SizeRange& rows = choice.rows;
    if (rows.most < changed.rows.least || rows.least > changed.rows.most) {
      if (!placed && rows.least > changed.rows.most) {
        result.push_back(changed);
        placed = true;
      }
      result.push_back(choice);
      continue;
    }
    add(choice, rows.least, std::min(rows.most, changed.rows.least - 1));
    if (!placed) result.push_back(changed);
    placed = true;
    if (rows.most > changed.rows.most) add(choice, changed.rows.most + 1, rows.most);
  }
  if (!placed) result.push_back(changed);
  return result;
}

}  // namespace kvsim
