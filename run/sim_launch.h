// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "run/engine.h"

namespace kvsim {

/// One pass of a sequence with everything that is computed in the same launch.
struct PassLaunch {
  std::int64_t padding = 0;           ///< masked rows before the sequence
  std::int64_t first = 0;             ///< row of the cache, padding included
  std::int64_t rows = 0;              ///< of this sequence, padding and drafts included
  std::int64_t drafts = 0;            ///< of these, behind the plan's rows
  std::vector<std::int64_t> kv_lens;  ///< keys of every sequence, this one's first; see lengths()
  std::int64_t all_rows = 0;          ///< of a linear layer, all sequences together

  /// kv_lens, or nothing where all are equal: a kernel is told lengths only where they differ.
  [[nodiscard]] std::span<const std::int64_t> lengths() const;
};

/// Whether a pass begins with row 0 and has nothing beside the sequence's own rows.
[[nodiscard]] bool is_from_start(const PassLaunch& launch);

/// The launch of a pass.
///
/// A pass that computes one token behind the prompt has `verify_width` rows, as have those of its
/// neighbours. Padded left, every sequence has the length of the longest prompt, and its first pass
/// also computes the padding; padded right, passes over the prompt have as many rows as the longest
/// one's, and nothing else changes. A neighbour of L tokens (the longest prompt's, padded) has
/// generated as many tokens as this sequence, m. In a pass of rows f … f + r − 1 that reaches the
/// end of the prompt it computes L + m − f rows, at least one; before, as many of its rows from f
/// on as there are, at least 1 and at most r.
[[nodiscard]] PassLaunch launch_of_pass(const Launch& launch, const PlanStep& step);

}  // namespace kvsim
