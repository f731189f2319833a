// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "cli/command.h"

namespace kvsim {

std::span<const Command* const> commands() {
  static constexpr std::array table{
      &predict_command, &run_command,    &diff_command,       &experiment_command,
      &merge_command,   &report_command, &import_command,     &fetch_command,
      &replay_command,  &reveal_command, &crosscheck_command, &probe_command,
      &fuzz_command,    &eval_command,   &kernels_command,    &formats_command,
  };
  return table;
}

}  // namespace kvsim
