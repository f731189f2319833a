// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "run/engine.h"
#include "sim/decoder/incremental.h"

namespace kvsim {

/// Whether a pass has to look at what operators give.
[[nodiscard]] constexpr bool observes(const PassRequest& request) {
  return request.layer_digests || request.layer_values || request.operator_values;
}

/// Adds what was requested of an operator's output: of the row before the last `drafts` ones, which
/// stands at `position`. Logits are not added: a pass has them anyway.
void add_operator_values(const OperatorOutput& output, std::int64_t drafts, std::int64_t position,
                         const PassRequest& request, EnginePass& result);

}  // namespace kvsim
