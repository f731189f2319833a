// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/attention/attention_replay.h"
#include "gpu/reveal/attention/key_blocks.h"
#include "gpu/reveal/attention/score_sums.h"
#include "gpu/reveal/attention/weight_sums.h"
#include "gpu/reveal/tree_probe.h"
#include "sim/order.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// When the sums of earlier blocks are multiplied because the maximum has risen.
enum class RescaleRule : std::uint8_t {
  not_seen,     ///< one block, or the maximum over all keys is known before any value is added
  every_rise,   ///< whenever a block raises the maximum
  beyond_rise,  ///< only where it has risen by more than a threshold
};

/// "whenever the maximum rises", "where the maximum rises enough", "not seen".
[[nodiscard]] std::string_view to_string(RescaleRule rule);

/// Sums P·V that are added alike.
struct RevealedValueSums {
  SumClass where;                    ///< rows and columns of ValueSums
  std::optional<AdditionTree> tree;  ///< keys as terms
  std::string why_no_tree;           ///< empty where there is one
  std::vector<Order> orders;         ///< of the grammar with these additions, the simplest first
};

/// Calls of the operator, by what for.
struct AttentionRevealCalls {
  std::int64_t classes = 0;
  std::int64_t blocks = 0;
  std::int64_t tree = 0;
  std::int64_t scores = 0;   ///< for the order of q·k
  std::int64_t weights = 0;  ///< for that of the sum of p
  std::int64_t check = 0;

  [[nodiscard]] std::int64_t all() const {
    return classes + blocks + tree + scores + weights + check;
  }
};

/// What was found out about a layer.
struct AttentionRevelation {
  KeyBlocks blocks;  ///< of the largest class of sums
  RescaleRule rescale = RescaleRule::not_seen;
  /// Of beyond_rise, in powers of two: the largest rise without and the smallest with rescaling.
  double largest_kept_rise = 0;
  double smallest_rescaled_rise = 0;
  std::optional<AdditionTree> merge;       ///< of several splits, which are its terms
  std::vector<RevealedValueSums> classes;  ///< the largest first
  ScoreFindings scores;                    ///< q·k
  WeightFindings weights;                  ///< the sum of p
  AttentionReplay replay;
  AttentionRevealCalls calls;
  softfloat::Format output;  ///< of the results

  [[nodiscard]] bool explained() const { return replay.explained(); }
};

/// What a caller wants to have done.
struct AttentionRevealOptions {
  std::uint64_t seed = 1;              ///< of terms compared and data checked
  std::int64_t least_outputs = 10000;  ///< compared with kernels of the table
  /// A class of sums P·V is probed only where that takes no more calls; the largest one always is.
  /// The sum of p is probed only where that takes no more either.
  std::int64_t most_calls = 4096;
  bool scores = true;   ///< look at q·k too
  bool weights = true;  ///< look at the sum of p too
};

/// The sums of the last query, of the largest class of its columns.
[[nodiscard]] const RevealedValueSums& sums_of_last_query(const AttentionRevelation& found,
                                                          const AttentionLayer& layer);

/// "sequential", "reverse", "pairwise" … of a merge of several splits; otherwise its text.
[[nodiscard]] std::string merge_text(const AdditionTree& merge);

/// Finds out how a back end's attention adds and rescales. Errors (cannot_tell): a call that does
/// not repeat, answers that fit no blocks of keys; and those of the back end.
[[nodiscard]] Result<AttentionRevelation> reveal_attention(
    AttentionCalls& calls, const AttentionRevealOptions& options = {});

}  // namespace kvsim::gpu
