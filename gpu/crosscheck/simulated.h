// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "sim/dispatch_choice.h"
#include "sim/engine/columns.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The side that is computed here.
class Simulation {
 public:
  Simulation() = default;
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  virtual ~Simulation() = default;

  /// What computes the check: a kernel's name, or an order. Errors (unavailable): nothing does.
  [[nodiscard]] virtual Result<std::string> kernel(const Check& check) = 0;
  /// Numbers of what observe() gives. Errors: of kernel() and of the kernels.
  [[nodiscard]] virtual Result<Tensor> run(const Check& check,
                                           const std::vector<Tensor>& inputs) = 0;
};

/// How a stack sums vectors, which no table of kernels says.
struct VectorSumRule {
  std::string_view dispatch;   ///< name of the row: "cpu-avx2"
  softfloat::Format storage;   ///< of the vector
  std::string_view operation;  ///< "sum" or "mean"
  std::string_view order;      ///< text of sim/order.h; terms rounded, in binary32
  std::string_view source;
};

/// Every rule.
[[nodiscard]] std::span<const VectorSumRule> vector_sum_rules();

/// The kernels of a dispatch. `orders` ("sum", "mean") stand for those of the rules. Eager
/// attention is the kernel named as that of the dispatch's prefill with "-eager" behind, or that
/// kernel itself where it is an eager one.
[[nodiscard]] std::unique_ptr<Simulation> named_simulation(
    DispatchChoice dispatch, std::map<std::string, std::string> orders = {});

}  // namespace kvsim::gpu
