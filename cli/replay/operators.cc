// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/operators.h"

#include <array>

namespace kvsim {

std::span<const ReplayOperator* const> replay_operators() {
  static constexpr std::array table{&attention_operator, &linear_operator,  &dot_operator,
                                    &norm_operator,      &softmax_operator, &rope_operator};
  return table;
}

}  // namespace kvsim
