// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/operators.h"

#include <array>

namespace kvsim {

std::span<const ReplayOperator* const> replay_operators() {
  static constexpr std::array table{&linear_operator, &dot_operator};
  return table;
}

}  // namespace kvsim
