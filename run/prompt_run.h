// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "run/run_loop.h"

namespace kvsim {

/// What one prompt's run tells while it goes on.
struct PromptOutput {
  std::function<Result<bool>(const RecordLine&)> line;
  const RunOutput* run = nullptr;      ///< for dumps
  std::function<bool()> is_cancelled;  ///< another prompt has failed: nothing more is needed
  std::function<void()> step_done;     ///< of all arms
};

/// Runs one prompt through every arm, in step. Holds for each arm whether an exponential was
/// bounded, as numbers 0 and 1, which threads may write at once.
[[nodiscard]] Result<std::vector<char>> run_prompt(const PreparedRun& run, std::size_t index,
                                                   const PromptOutput& output);

}  // namespace kvsim
