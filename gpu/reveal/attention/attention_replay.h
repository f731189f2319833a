// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// A row of the simulator's table beside a back end.
struct KernelAgreement {
  std::string kernel;
  bool same_tree = false;  ///< it declares the tree of P·V that was revealed
  std::int64_t compared = 0;
  std::int64_t different = 0;  ///< outputs that differ in any bit; a NaN is a NaN
};

/// A difference as small as it could be made: all other values of its column are 0.
struct FailingOutput {
  std::string kernel;
  std::int64_t head = 0;
  std::int64_t query = 0;
  std::int64_t element = 0;
  std::vector<std::int64_t> keys;
  std::vector<float> values;  ///< of those keys
  float seen = 0;
  float replayed = 0;
};

/// What the comparison with the table gave.
struct AttentionReplay {
  /// Kernels that offer such a layer and were compared: those that declare the revealed tree, or
  /// where none of them agrees all others. The nearest first.
  std::vector<KernelAgreement> kernels;
  std::optional<FailingOutput> failing;  ///< against the nearest kernel, where none agrees

  /// Whether a kernel gave every output.
  [[nodiscard]] bool explained() const;
};

/// What decides how much is compared.
struct AttentionReplayOptions {
  std::uint64_t seed = 1;
  std::int64_t least_outputs = 10000;
};

/// Compares a back end's outputs with those of every attention kernel that can be the same, on
/// attention_data(). `tree`: what was revealed of P·V of the last query, if anything; a tree
/// decides which kernels come first, equal bits decide alone. Errors: those of the back end.
[[nodiscard]] Result<AttentionReplay> replay_attention(AttentionCalls& calls,
                                                       const std::optional<AdditionTree>& tree,
                                                       const AttentionReplayOptions& options);

}  // namespace kvsim::gpu
