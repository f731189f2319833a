// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/linear.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "cli/kernels/entry.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// " M 1 to 3", or nothing where every size is meant.
std::string range_text(std::string_view name, const SizeRange& range) {
  const bool open = range.most == std::numeric_limits<std::int64_t>::max();
  if (open && range.least <= 1) return {};
  if (open) return fmt::format(", {} ≥ {}", name, range.least);
  if (range.least == range.most) return fmt::format(", {} = {}", name, range.least);
  return fmt::format(", {} {} to {}", name, range.least, range.most);
}

std::string rule_name(const LinearRule& rule) {
  return fmt::format("{}{}{}{}{}{}", softfloat::format_name(rule.storage),
                     range_text("M", rule.rows), range_text("N", rule.outputs),
                     range_text("K", rule.terms), range_text("M·N·K", rule.multiply_adds),
                     range_text("M·N·K of a batch", rule.batch_multiply_adds));
}

std::string rule_text(const LinearRule& rule) {
  std::string text(rule.order);
  const std::string products = product_text(rule.order, rule.product);
  if (!products.empty()) text += ", " + products;
  if (rule.accumulator != softfloat::binary32) {
    text += fmt::format(", sums in {}", softfloat::format_name(rule.accumulator));
  }
  if (rule.output.width() > 1) {
    text += fmt::format(", results in {}", softfloat::format_name(rule.output));
  }
  if (rule.edge_outputs > 0) {
    text += fmt::format(", the last N mod {} outputs {}", rule.edge_outputs, rule.edge_order);
  }
  if (!rule.second_edge_order.empty()) {
    text += fmt::format(", the second of them {}", rule.second_edge_order);
  }
  if (rule.leading_modulus > 0) {
    text +=
        rule.leading_modulus == 1
            ? ", the first term to lane 0"
            : fmt::format(", the first terms (K mod {0}, or {0}) to lane 0", rule.leading_modulus);
  }
  if (rule.exchanged) text += ", rows and outputs exchanged";
  if (rule.starts_from_bias) text += ", added to the bias block by block";
  text += fmt::format(" ({})", softfloat::to_string(rule.evidence));
  if (!rule.note.empty()) text += fmt::format(": {}", rule.note);
  return text;
}

std::string split_text(const LinearSplit& split) {
  std::string text;
  switch (split.kind) {
    case SplitKind::none:
      return "never";
    case SplitKind::fixed:
      text = fmt::format("into {}", split.splits);
      break;
    case SplitKind::waves:
      text = fmt::format(
          "the fewest with 85 % of the best share of busy multiprocessors, at most {}, "
          "of {} tiles of K or more",
          split.splits, split.smallest_tiles);
      break;
  }
  switch (split.reduction) {
    case SplitReduction::parallel:
      return text + "; added in the accumulator's format";
    case SplitReduction::rounded:
      return text + "; each rounded to the output's format, then added";
    case SplitReduction::serial:
      break;
  }
  return text + "; each added to the output, which is rounded every time";
}

}  // namespace

std::vector<KernelEntry> linear_entries() {
  std::vector<KernelEntry> entries;
  for (const LinearKernel& row : linear_kernels()) {
    KernelParameters parameters;
    for (const LinearRule& rule : row.rules) {
      parameters.emplace_back(rule_name(rule), rule_text(rule));
    }
    parameters.emplace_back("tile", fmt::format("{} rows × {} outputs, {} terms of K",
                                                row.tile_rows, row.tile_outputs, row.tile_terms));
    parameters.emplace_back("splits of K", split_text(row.split));
    parameters.emplace_back("bias", row.bias_after_rounding
                                        ? "added to the rounded result, rounded again"
                                        : "added in binary32 before the one rounding");
    entries.push_back({std::string(row.name),
                       {},
                       row.device,
                       row.source,
                       {},
                       row.evidence,
                       {},
                       std::move(parameters)});
  }
  return entries;
}

}  // namespace kvsim
