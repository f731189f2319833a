// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/linear.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
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
  std::string_view kernel;            ///< of linear_kernels(), or the name of `own`
  const LinearKernel* own = nullptr;  ///< a kernel that stands in no table; not owned
};

/// Formats that a dispatch sets; none: as the model and the user have them.
struct DispatchFormats {
  std::optional<softfloat::Format> weights = {};  ///< none: as the file has them
  std::optional<softfloat::Format> operands =
      {};  ///< of linear layers and queries; none: not rounded
  /// In which linear layers add and round their products; none: that of the kernel. A matrix unit
  /// has its own, which this one must hold.
  std::optional<softfloat::Format> accumulator = {};
  std::optional<softfloat::Format> activations = {};  ///< what every operator rounds its result to
  std::optional<softfloat::Format> kv = {};           ///< of the cache; none: as activations
  std::optional<softfloat::Format> logits = {};       ///< of the output head; none: as activations

  friend bool operator==(const DispatchFormats&, const DispatchFormats&) = default;
};

/// One row. Names are those of the kernel tables. With exact arithmetic no attention kernel is
/// named; with binary64 none at all.
struct Dispatch {
  std::string_view name;             ///< "h100"
  std::string_view other_name = {};  ///< under which it is found too; may be empty
  std::string_view description;      ///< one line without a full stop
  DispatchArithmetic arithmetic = DispatchArithmetic::kernels;
  std::int64_t multiprocessors = 1;  ///< of the device: they decide splits
  std::span<const LinearChoice> linear = {};
  std::string_view attention_prefill = {};  ///< two or more queries
  std::string_view attention_decode = {};   ///< one query
  std::int64_t prefill_splits = 0;          ///< forced number of splits; 0: the kernel's rule
  std::int64_t decode_splits = 0;           ///< the same of attention_decode
  std::string_view norm = {};
  std::string_view norm_plus_one = {};  ///< where the weight counts as 1 + weight (Gemma)
  std::string_view softmax = {};
  std::string_view log_softmax = {};
  std::string_view rope = {};
  std::string_view silu = {};
  std::string_view gelu = {};
  std::string_view gelu_tanh = {};
  std::string_view residual = {};
  DispatchFormats formats = {};
  std::string_view source = {};
  softfloat::Evidence evidence = softfloat::Evidence::assumed;  ///< of the choice; rows have theirs
};

/// Every dispatch, in the order in which they are listed to the user.
[[nodiscard]] std::span<const Dispatch> dispatches();

/// The row of that name or other name ("h100-fa3" is "h100"). An error (usage) names the text, the
/// accepted names and the near one.
[[nodiscard]] Result<const Dispatch*> find_dispatch(std::string_view name);

/// The kernel of a linear layer of `rows` rows, or an error (usage) where the dispatch has none.
[[nodiscard]] Result<const LinearKernel*> linear_kernel_for(const Dispatch& dispatch,
                                                            std::int64_t rows);

/// One line of a dispatch: what is decided, and how.
struct DispatchLine {
  std::string operation;  ///< "linear.m2-64", as DispatchChoice::set() takes it
  std::string kernel;     ///< "h100-splitk", likewise

  friend bool operator==(const DispatchLine&, const DispatchLine&) = default;
};

/// Every line of a dispatch, in the order of a decoder layer; the multiprocessors come first, the
/// formats last. Where no kernels are named, the arithmetic takes their place.
[[nodiscard]] std::vector<DispatchLine> dispatch_lines(const Dispatch& dispatch);

/// dispatch_lines() as text, one line each, below the name.
[[nodiscard]] std::string to_text(const Dispatch& dispatch);

/// What differs between two dispatches: for each operation that does, a line with "- " and what
/// the first does, a line with "+ " and what the second does. Empty where nothing differs.
[[nodiscard]] std::string diff_text(const Dispatch& first, const Dispatch& second);

}  // namespace kvsim
