// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "sim/engine/columns.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"

/// Options that several operators of `kvsim replay` read.
namespace kvsim {

/// --threads and the environment's KVSIM_SIMD. Errors (usage): see integer_option and
/// select_simd_level.
[[nodiscard]] Result<EngineOptions> engine_options(const ParsedOptions& options);

/// The value of an option that names a format, or `fallback`.
[[nodiscard]] Result<softfloat::Format> format_option(const ParsedOptions& options,
                                                      std::string_view name,
                                                      const softfloat::Format& fallback);

/// The format of the results: --round-to, or `fallback` where it has whole bytes, or binary32.
/// Errors (usage): of format_named; a format that is not 8, 16 or 32 bits wide.
[[nodiscard]] Result<softfloat::Format> result_format(const ParsedOptions& options,
                                                      const softfloat::Format& fallback);

/// The value of an option as the nearest binary32, which must lie in [lowest, highest]; nothing
/// when it was not given.
[[nodiscard]] Result<std::optional<float>> float_option(const ParsedOptions& options,
                                                        std::string_view name, float lowest,
                                                        float highest);

/// The orders of --order. Errors (usage): of the grammar; one that is given twice.
[[nodiscard]] Result<std::vector<Order>> order_options(const ParsedOptions& options);

/// --product: rounded (default), fused or exact.
[[nodiscard]] Result<Product> product_option(const ParsedOptions& options);

/// The texts of --kernel. Errors (usage): one that is given twice.
[[nodiscard]] Result<std::vector<std::string>> kernel_options(const ParsedOptions& options);

/// Errors (usage): neither --kernel nor --order is given; options of --order without it.
[[nodiscard]] std::optional<Error> check_kernel_or_order(const ParsedOptions& options,
                                                         std::string_view operator_name,
                                                         bool has_kernels, bool has_orders);

/// The error for a kernel that the table of an operator does not have, with the near one.
[[nodiscard]] Error unknown_kernel(std::string_view operator_name, std::string_view text,
                                   const std::vector<std::string_view>& names);

/// The rows of a table that --kernel names, in the order given. Errors (usage): of kernel_options
/// and unknown_kernel.
template <class Row>
Result<std::vector<const Row*>> kernels_from(const ParsedOptions& options,
                                             std::string_view operator_name,
                                             std::span<const Row> rows) {
  const Result<std::vector<std::string>> names = kernel_options(options);
  if (!names) return names.error();
  std::vector<const Row*> found;
  for (const std::string& name : *names) {
    const auto row = std::ranges::find(rows, name, &Row::name);
    if (row == rows.end()) {
      std::vector<std::string_view> known;
      for (const Row& each : rows) known.push_back(each.name);
      return unknown_kernel(operator_name, name, known);
    }
    found.push_back(&*row);
  }
  return found;
}

/// "fused": the name of a product, as --product takes it.
[[nodiscard]] std::string_view product_name(Product product);

}  // namespace kvsim
