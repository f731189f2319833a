// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <string>

#include "cli/kernels/entry.h"
#include "sim/exp_models.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"
#include "sim/operators/softmax.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// The members that every row of these tables has.
template <class Row>
KernelEntry entry_of(const Row& row, KernelParameters parameters) {
  return {std::string(row.name), {},       row.device,           row.source, row.date,
          row.evidence,          row.note, std::move(parameters)};
}

std::string exp_text(ExpModel model) {
  const ExpModelRow& row = exp_model_row(model);
  return row.bounded ? fmt::format("{}, bounded", row.name) : std::string(row.name);
}

std::string_view weight_text(WeightRule rule) {
  switch (rule) {
    case WeightRule::before_rounding:
      return "y · w is rounded to storage";
    case WeightRule::plus_one:
      return "y · (1 + w) is rounded to storage";
    case WeightRule::after_rounding:
      break;
  }
  return "y is rounded to storage, then y · w is";
}

std::string_view result_text(SoftmaxResult result) {
  switch (result) {
    case SoftmaxResult::times_reciprocal:
      return "e · (1 ÷ s)";
    case SoftmaxResult::logarithm:
      return "t - log s";
    case SoftmaxResult::sleef_logarithm:
      return "t - log s, SLEEF's log";
    case SoftmaxResult::quotient:
      break;
  }
  return "e ÷ s";
}

std::string_view arithmetic_text(RopeArithmetic arithmetic) {
  switch (arithmetic) {
    case RopeArithmetic::rounded_once:
      return "binary32, each operation rounded, then to storage";
    case RopeArithmetic::fused:
      return "binary32, the sum fused with the second product, then to storage";
    case RopeArithmetic::storage_steps:
      break;
  }
  return "each operation rounded to storage";
}

}  // namespace

std::vector<KernelEntry> norm_entries() {
  std::vector<KernelEntry> entries;
  for (const NormKernel& row : norm_kernels()) {
    KernelParameters parameters{
        {"kind", row.kind == NormKind::rms ? "RMS" : "layer"},
        {"sums", std::string(row.order)},
        {"squares", product_text(row.order, row.product)},
        {"1/√v", row.root == RootRule::one_rounding ? "correctly rounded" : "1 ÷ √v"},
        {"weight", std::string(weight_text(row.weight))}};
    entries.push_back(entry_of(row, std::move(parameters)));
  }
  return entries;
}

std::vector<KernelEntry> softmax_entries() {
  std::vector<KernelEntry> entries;
  for (const SoftmaxKernel& row : softmax_kernels()) {
    KernelParameters parameters{{"sum", std::string(row.order)}};
    if (row.short_below > 0) {
      parameters.emplace_back(fmt::format("sum below {} elements", row.short_below),
                              row.short_order);
    }
    parameters.emplace_back("exp", exp_text(row.exp));
    parameters.emplace_back("result", result_text(row.result));
    entries.push_back(entry_of(row, std::move(parameters)));
  }
  return entries;
}

std::vector<KernelEntry> rope_entries() {
  std::vector<KernelEntry> entries;
  for (const RopeKernel& row : rope_kernels()) {
    KernelParameters parameters{
        {"pairs", row.pairs == RopePairs::half_split ? "i and i + d/2" : "2i and 2i + 1"},
        {"frequencies", row.frequencies == RopeFrequencies::repeated_product
                            ? "position · s · s …, s = base^(-2/d)"
                            : "1 ÷ base^(2i/d)"},
        {"frequency", std::string(softfloat::format_name(row.frequency))},
        {"position", std::string(softfloat::format_name(row.position))},
        {"angle", std::string(softfloat::format_name(row.angle))},
        {"table", row.table ? std::string(softfloat::format_name(*row.table))
                            : std::string("rounded to storage")},
        {"arithmetic", std::string(arithmetic_text(row.arithmetic))}};
    entries.push_back(entry_of(row, std::move(parameters)));
  }
  return entries;
}

std::vector<KernelEntry> activation_entries() {
  std::vector<KernelEntry> entries;
  for (const ActivationKernel& row : activation_kernels()) {
    KernelParameters parameters{{"function", std::string(to_string(row.function))}};
    if (row.function == ActivationFunction::silu) {
      parameters.emplace_back("exp", exp_text(row.exp));
      if (row.group > 0) {
        parameters.emplace_back(fmt::format("exp after the last whole {}", row.group),
                                exp_text(row.tail_exp));
      }
    }
    if (row.function == ActivationFunction::gelu_tanh) {
      parameters.emplace_back("x + 0.044715·x³", row.fused ? "fused" : "each operation rounded");
    }
    entries.push_back(entry_of(row, std::move(parameters)));
  }
  return entries;
}

std::vector<KernelEntry> residual_entries() {
  std::vector<KernelEntry> entries;
  for (const ResidualKernel& row : residual_kernels()) {
    KernelParameters parameters{{"stream", row.stream
                                               ? std::string(softfloat::format_name(*row.stream))
                                               : std::string("storage")}};
    entries.push_back(entry_of(row, std::move(parameters)));
  }
  return entries;
}

}  // namespace kvsim
