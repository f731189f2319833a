// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/size_search.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Which size of a layer a sweep changes.
enum class AttentionSize : std::uint8_t { queries, keys };

/// Sizes that share one attention order.
struct AttentionSizes {
  SizeClass sizes;
  /// Of a sweep over keys what all of them have: the blocks of the longest, the orders of P·V that
  /// hold for all of which the grammar has any, the kernels that give every bit of all. Of one over
  /// queries what was found of the first.
  AttentionRevelation found;
  bool all_have_order = true;  ///< the grammar has an order of P·V of every one that was looked at
};

/// The sizes of a range grouped by how the last query is added, which sees every key under either
/// mask. Queries: by the bits of its output, while it and all keys stay the same. Keys: outputs of
/// different numbers of keys share no bits, and each size is revealed; neighbours are one class
/// where they agree in direction, block, splits and rescale rule (what is not seen agrees with
/// anything), where one order of the grammar has P·V of all of which it has any, and where some
/// kernel of the table gives every bit of all of them, or of none. Errors: as reveal_attention().
[[nodiscard]] Result<std::vector<AttentionSizes>> sweep_attention(
    Backend& backend, AttentionLayer layer, const AttentionRevealOptions& options,
    AttentionSize swept, const SizeSweep& range);

}  // namespace kvsim::gpu
