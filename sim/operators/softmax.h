// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/engine/columns.h"
#include "sim/exp_models.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Softmax and log-softmax of rows. All arithmetic is binary32, rounded after each operation:
/// t = x − max x, e = exp t, s = Σ e; the result is rounded to storage.
namespace kvsim {

/// What becomes of t, e and s.
enum class SoftmaxResult : std::uint8_t {
  times_reciprocal,  ///< e · (1 ÷ s)
  quotient,          ///< e ÷ s
  logarithm,         ///< t − log s, correctly rounded: log-softmax
  sleef_logarithm,   ///< the same with SLEEF's log
};

/// Whether that is log-softmax.
[[nodiscard]] constexpr bool takes_logarithm(SoftmaxResult result) {
  return result == SoftmaxResult::logarithm || result == SoftmaxResult::sleef_logarithm;
}

/// One row.
struct SoftmaxKernel {
  std::string_view name = {};    ///< "torch-cpu-softmax"
  std::string_view device = {};  ///< device class: "CPU", "GPU", "any"
  std::string_view order = {};   ///< of s: text of sim/order.h
  /// Rows of fewer elements than this are summed in `short_order`; 0: none.
  std::int64_t short_below = 0;
  std::string_view short_order = {};
  ExpModel exp = ExpModel::correctly_rounded;
  /// Elements of a row after its last whole group of this many use `tail_exp`; 0: none.
  std::int64_t group = 0;
  ExpModel tail_exp = ExpModel::correctly_rounded;
  SoftmaxResult result = SoftmaxResult::quotient;
  std::string_view source = {};  ///< repository and file, or document
  std::string_view date = {};    ///< of the source: a version, a month or a year
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const SoftmaxKernel> softmax_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const SoftmaxKernel* find_softmax_kernel(std::string_view name);

/// Rows of scores.
struct SoftmaxProblem {
  softfloat::Format storage = {};  ///< of the result; its numbers are floats
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* x = nullptr;  ///< [rows][columns], floats
  /// Replaces the kernel's exp model.
  std::optional<ExpFunction> exp = {};
};

/// The function that apply_softmax() will use; it says whether the result is bounded only.
[[nodiscard]] ExpFunction softmax_exp(const SoftmaxKernel& kernel, const SoftmaxProblem& problem);

/// out[rows][columns] = the softmax of each row, numbers of `storage`; `out` may be `x`. A row with
/// a NaN, with +infinity, or with −infinity alone is NaN throughout, as in PyTorch. Errors name a
/// size, a format, an order or a level that cannot be.
Result<bool> apply_softmax(const SoftmaxKernel& kernel, const SoftmaxProblem& problem, float* out,
                           const EngineOptions& options = {});

}  // namespace kvsim
