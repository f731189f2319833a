// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>

#include "cli/options.h"
#include "cli/replay/replay.h"
#include "cli/replay/tensors.h"
#include "softfloat/result.h"

namespace kvsim {

/// One operator of `kvsim replay`: a row of the table in operators.cc, a file of its own.
struct ReplayOperator {
  std::string_view name;
  /// Options that it takes beside --tensors, --expect, --out and --threads.
  std::span<const std::string_view> options;
  /// Reads the options and the tensors, runs every kernel.
  Result<Replay> (*run)(const ParsedOptions& options, const ReplayFile& file);
};

extern const ReplayOperator attention_operator;
extern const ReplayOperator dot_operator;
extern const ReplayOperator linear_operator;
extern const ReplayOperator norm_operator;
extern const ReplayOperator rope_operator;
extern const ReplayOperator softmax_operator;

/// Every operator, in the order of --help.
[[nodiscard]] std::span<const ReplayOperator* const> replay_operators();

}  // namespace kvsim
