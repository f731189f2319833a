// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/own_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvsim {
namespace {

bool is_linear(const OwnKernel& kernel) {
  constexpr std::array<std::string_view, 3> names{"linear", "matmul", "gemm"};
  return std::ranges::find(names, kernel.operation) != names.end();
}

Result<bool> check_kernel(const OwnKernel& kernel) {
  if (!is_linear(kernel)) {
    return Error{ErrorKind::usage,
                 fmt::format("--kernel {}: revealed of {}; accepted: linear, matmul and gemm",
                             kernel.name, kernel.operation)};
  }
  if (!kernel.exceptions.empty()) {
    return Error{
        ErrorKind::usage,
        fmt::format("--kernel {}: some of its sums are added otherwise (kvsim kernels {}); "
                    "accepted: kernels with one order",
                    kernel.name, kernel.name)};
  }
  return true;
}

}  // namespace

Result<LinearTable> LinearTable::make(std::span<const std::string> names) {
  LinearTable table;
  table.kernels_.assign(linear_kernels().begin(), linear_kernels().end());
  const bool known = std::ranges::all_of(
      names, [](const std::string& name) { return find_linear_kernel(name) != nullptr; });
  if (known) return table;
  Result<std::vector<OwnKernel>> own = read_own_kernels(own_kernels_path());
  if (!own) return own.error();
  for (const OwnKernel& kernel : *own) {
    if (std::ranges::find(names, kernel.name) == names.end()) continue;
    if (const auto fits = check_kernel(kernel); !fits) return fits.error();
  }
  table.own_ = std::move(*own);
  std::erase_if(table.own_, [](const OwnKernel& kernel) {
    return !is_linear(kernel) || !kernel.exceptions.empty();
  });
  table.rules_.reserve(table.own_.size());
  for (const OwnKernel& kernel : table.own_) {
    LinearRule rule;
    rule.storage = kernel.storage;
    rule.order = kernel.order;
    rule.product = kernel.product;
    rule.accumulator = kernel.accumulator;
    rule.output = kernel.output;
    rule.evidence = softfloat::Evidence::measured;
    table.rules_.push_back(rule);
    LinearKernel row;
    row.name = kernel.name;
    row.device = kernel.device;
    row.rules = std::span(&table.rules_.back(), 1);
    row.source = kernel.key;
    row.evidence = softfloat::Evidence::measured;
    table.kernels_.push_back(row);
  }
  return table;
}

Result<bool> LinearTable::check_shape(const LinearKernel& kernel, std::int64_t rows,
                                      std::int64_t outputs, std::int64_t terms) const {
  const auto own = std::ranges::find(own_, kernel.name, &OwnKernel::name);
  if (own == own_.end()) return true;
  if (own->rows == rows && own->outputs == outputs && own->terms == terms) return true;
  return Error{ErrorKind::usage,
               fmt::format("--kernel {}: {} rows, {} outputs, {} terms; accepted: what it was "
                           "revealed at, {} rows, {} outputs, {} terms",
                           kernel.name, rows, outputs, terms, own->rows, own->outputs, own->terms)};
}

}  // namespace kvsim
