// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/kernels/own_kernels.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "softfloat/result.h"

namespace kvsim {

/// The table of attention kernels, followed by those of the user's, each of which is a kernel of
/// the table for the one layer at which it was revealed.
class AttentionTable {
 public:
  /// The user's file is read only if one of `names` is no kernel of the table. Errors: as
  /// read_own_kernels(); (usage) one of the names is a row of the user's that is no attention, an
  /// attribute that is none.
  [[nodiscard]] static Result<AttentionTable> make(std::span<const std::string> names);

  AttentionTable(const AttentionTable&) = delete;
  AttentionTable(AttentionTable&&) = default;
  AttentionTable& operator=(const AttentionTable&) = delete;
  AttentionTable& operator=(AttentionTable&&) = default;
  ~AttentionTable() = default;

  [[nodiscard]] std::span<const AttentionKernel> kernels() const { return kernels_; }
  /// Holds true, or (usage) says at which other layer one of the user's kernels was revealed: its
  /// sizes, storage, mask, scale and splits are those of that layer alone.
  [[nodiscard]] Result<bool> check_layer(const AttentionKernel& kernel,
                                         const AttentionProblem& problem) const;

 private:
  AttentionTable() = default;

  std::vector<OwnKernel> own_;            ///< the kernels name texts of it
  std::vector<AttentionProblem> layers_;  ///< at which own_ were revealed
  std::vector<AttentionKernel> kernels_;
};

}  // namespace kvsim
