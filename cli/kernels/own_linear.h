// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/kernels/own_kernels.h"
#include "sim/linear.h"
#include "softfloat/result.h"

namespace kvsim {

/// The table of linear kernels, followed by those of the user's that compute a linear layer, each
/// for the one shape at which it was revealed.
class LinearTable {
 public:
  /// The user's file is read only if one of `names` is no kernel of the table. Errors: as
  /// read_own_kernels(); (usage) one of the names is a row of the user's that is no linear layer,
  /// or some of whose sums are added otherwise.
  [[nodiscard]] static Result<LinearTable> make(std::span<const std::string> names);

  LinearTable(const LinearTable&) = delete;
  LinearTable(LinearTable&&) = default;
  LinearTable& operator=(const LinearTable&) = delete;
  LinearTable& operator=(LinearTable&&) = default;
  ~LinearTable() = default;

  [[nodiscard]] std::span<const LinearKernel> kernels() const { return kernels_; }
  /// Holds true, or (usage) says at which other shape one of the user's kernels was revealed.
  [[nodiscard]] Result<bool> check_shape(const LinearKernel& kernel, std::int64_t rows,
                                         std::int64_t outputs, std::int64_t terms) const;

 private:
  LinearTable() = default;

  // The rules name texts of own_, the kernels rules: what a move leaves where it is.
  std::vector<OwnKernel> own_;
  std::vector<LinearRule> rules_;
  std::vector<LinearKernel> kernels_;
};

}  // namespace kvsim
