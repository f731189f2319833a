// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim {

/// How a layer makes scores of q·k, as its model says.
struct ScoreRule {
  double scale = 1;         ///< factor of q·k
  double soft_cap = 0;      ///< a score becomes cap · tanh(score ÷ cap); 0: it stays
  std::int64_t window = 0;  ///< keys that a query sees, its own last; 0: all

  friend bool operator==(const ScoreRule&, const ScoreRule&) = default;
};

}  // namespace kvsim
