// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "run/engine.h"

namespace kvsim {

/// An EngineArm may be one of these, too: its sequences then leave out rows whose bits they have
/// already. Arms that are none compute every row of a pass.
class KeepsRows {
 public:
  KeepsRows() = default;
  KeepsRows(const KeepsRows&) = delete;
  KeepsRows& operator=(const KeepsRows&) = delete;

  /// Whether a pass over rows 0 … after − 1, made directly after one over the first `before` of
  /// them, computes only the others.
  [[nodiscard]] virtual bool keeps_rows(std::int64_t before, std::int64_t after,
                                        const Launch& launch) const = 0;

 protected:
  ~KeepsRows() = default;
};

}  // namespace kvsim
