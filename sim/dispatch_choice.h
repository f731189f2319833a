// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/dispatch.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// One line of a dispatch and what it is to be.
struct DispatchSetting {
  std::string_view line;   ///< "attention.decode"
  std::string_view value;  ///< "a100-fa2.split8"
};

/// A dispatch whose lines can be changed one at a time. Owns what it adds to the tables; copies
/// share it.
///
/// Lines, as dispatch_lines() prints them:
///   dispatch           a named set; drops every other setting
///   multiprocessors    a number
///   linear.mA-B        kernel of linear layers of A to B rows; also mA (of A rows) and mA+ (A rows
///                      or more); `linear` alone: of any rows
///   attention.prefill  kernel where a pass has two or more queries
///   attention.decode   kernel of one query
///   norm, norm.plus-one, softmax, log-softmax, rope, silu, gelu, gelu-tanh, residual
///   format.weights, format.operands, format.accumulator, format.activations, format.kv,
///   format.logits      a format, or "default": as DispatchFormats says
/// Kernels are those of their tables. Without the device in front, a name is looked up on the
/// device of the set and then on the others: `fa2` is h100-fa2 under h100-fa3. A linear kernel may
/// be followed by a dot and an order (sim/order.h), which its rows then sum in:
/// `gemv.lanes(32,4)`; an attention kernel by `.splitN`, which forces the number of splits.
class DispatchChoice {
 public:
  /// The row as it is.
  explicit DispatchChoice(const Dispatch& row);
  /// find_dispatch() by name.
  [[nodiscard]] static Result<DispatchChoice> named(std::string_view name);

  /// Changes one line. Errors (usage) name the line, the value and what is accepted; nothing is
  /// changed then.
  [[nodiscard]] Result<bool> set(std::string_view line, std::string_view value);
  /// All of them, `dispatch` first, the others in their order.
  [[nodiscard]] Result<bool> set_all(std::span<const DispatchSetting> settings);

  /// Whether set() knows a line of that name, whatever the value.
  [[nodiscard]] static bool is_line(std::string_view line);

  /// The name of the set, and of the row that it was made from.
  [[nodiscard]] std::string_view name() const { return row_.name; }
  /// Its views stay valid as long as this choice, or a copy of it that is not set() anew, lives.
  [[nodiscard]] const Dispatch& dispatch() const { return row_; }
  [[nodiscard]] std::vector<DispatchLine> lines() const { return dispatch_lines(row_); }

 private:
  struct OwnedKernel;

  [[nodiscard]] Result<bool> set_linear(std::string_view line, const SizeRange& rows,
                                        std::string_view value);
  [[nodiscard]] Result<bool> set_attention(std::string_view line, std::string_view value);
  [[nodiscard]] Result<bool> set_operator(std::string_view line, std::string_view value);
  [[nodiscard]] Result<bool> set_format(std::string_view line, std::string_view value);

  Dispatch row_;
  std::shared_ptr<const std::vector<LinearChoice>> linear_;        // null: the row's own
  std::vector<std::shared_ptr<const OwnedKernel>> owned_kernels_;  // that linear_ names
};

}  // namespace kvsim
