// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/kernels/own_kernels.h"
#include "sim/sum.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"

namespace kvsim {

/// What a row fixes, in the order in which it is told: {"tiles", "64 × 128"}.
using KernelParameters = std::vector<std::pair<std::string, std::string>>;

/// One row of any table, as `kvsim kernels` lists it.
struct KernelEntry {
  std::string name;
  std::string operator_name;  ///< one of kernel_operators(); of the user's: "dot (yours)"
  std::string_view device;    ///< device class, as the row has it
  std::string_view source;
  std::string_view date;  ///< of the source; empty where the source itself has it
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note;  ///< what is assumed; may be empty
  KernelParameters parameters;
};

/// The operators that have kernels, in the order of the list.
[[nodiscard]] std::span<const std::string_view> kernel_operators();

/// Every row, operator by operator.
[[nodiscard]] std::vector<KernelEntry> kernel_entries();

/// The rows of one table each.
[[nodiscard]] std::vector<KernelEntry> attention_entries();
[[nodiscard]] std::vector<KernelEntry> linear_entries();
[[nodiscard]] std::vector<KernelEntry> norm_entries();
[[nodiscard]] std::vector<KernelEntry> softmax_entries();
[[nodiscard]] std::vector<KernelEntry> rope_entries();
[[nodiscard]] std::vector<KernelEntry> activation_entries();
[[nodiscard]] std::vector<KernelEntry> residual_entries();
[[nodiscard]] std::vector<KernelEntry> exp_entries();
[[nodiscard]] std::vector<KernelEntry> dispatch_entries();
[[nodiscard]] std::vector<KernelEntry> unit_entries();

/// The user's own, which must outlive the result: the fingerprint's key is the source.
[[nodiscard]] std::vector<KernelEntry> own_entries(std::span<const OwnKernel> kernels);

/// "yes" or "no".
[[nodiscard]] std::string yes_or_no(bool value);

/// "products rounded", "products fused" or "products exact"; empty for an order that is a chain on
/// a matrix unit, which has no products of its own.
[[nodiscard]] std::string product_text(std::string_view order, Product product);

}  // namespace kvsim
