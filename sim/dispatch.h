// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/linear.h"
#include "softfloat/evidence.h"
#include "softfloat/result.h"

/// Which kernel a stack picks for each operator and size. Cache-on and cache-off are one model
/// under one dispatch with different sizes: this is where the two become different.
namespace kvsim {

/// What computes the operators.
enum class DispatchArithmetic : std::uint8_t {
  kernels,   ///< the kernels that the row names
  exact,     ///< sums of linear layers, norms and attention are exact; storage as with kernels
  binary64,  ///< binary64 throughout, nothing rounded to storage
};

/// The kernel of linear layers with so many rows.
struct LinearChoice {
  SizeRange rows;
  std::string_view kernel;  ///< of linear_kernels()
};

/// One row. Names are those of the kernel tables. With exact arithmetic no attention kernel is
/// named; with binary64 none at all.
struct Dispatch {
  std::string_view name;         ///< "h100"
  std::string_view description;  ///< one line without a full stop
  DispatchArithmetic arithmetic = DispatchArithmetic::kernels;
  std::int64_t multiprocessors = 1;  ///< of the device: they decide splits
  std::span<const LinearChoice> linear = {};
  std::string_view attention_prefill = {};  ///< two or more queries
  std::string_view attention_decode = {};   ///< one query
  std::int64_t attention_splits = 0;        ///< forced number of splits; 0: the kernel's rule
  std::string_view norm = {};
  std::string_view norm_plus_one = {};  ///< where the weight counts as 1 + weight (Gemma)
  std::string_view softmax = {};
  std::string_view log_softmax = {};
  std::string_view rope = {};
  std::string_view silu = {};
  std::string_view gelu = {};
  std::string_view gelu_tanh = {};
  std::string_view residual = {};
  std::string_view source = {};
  softfloat::Evidence evidence = softfloat::Evidence::assumed;  ///< of the choice; rows have theirs
};

/// Every dispatch, in the order in which they are listed to the user.
[[nodiscard]] std::span<const Dispatch> dispatches();

/// The row of that name. An error (usage) names the text, the accepted names and the near one.
[[nodiscard]] Result<const Dispatch*> find_dispatch(std::string_view name);

/// The kernel of a linear layer of `rows` rows, or an error (usage) where the dispatch has none.
[[nodiscard]] Result<const LinearKernel*> linear_kernel_for(const Dispatch& dispatch,
                                                            std::int64_t rows);

/// One operator of a dispatch: what is computed, and by which kernel.
struct DispatchLine {
  std::string operation;  ///< "linear, 2 to 64 rows"
  std::string kernel;

  friend bool operator==(const DispatchLine&, const DispatchLine&) = default;
};

/// Every operator of a dispatch, in the order of a decoder layer; the multiprocessors come first.
[[nodiscard]] std::vector<DispatchLine> dispatch_lines(const Dispatch& dispatch);

/// dispatch_lines() as text, one line each, below the name.
[[nodiscard]] std::string to_text(const Dispatch& dispatch);

/// What differs between two dispatches: for each operation that does, a line with "- " and what
/// the first does, a line with "+ " and what the second does. Empty where nothing differs.
[[nodiscard]] std::string diff_text(const Dispatch& first, const Dispatch& second);

}  // namespace kvsim
