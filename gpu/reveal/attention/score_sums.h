// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "sim/order.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The sums q·k of a layer's last query as a reduction that counts. A score is seen through the
/// softmax: the value of each of some keys is 1 in a column of its own, so that the outputs tell
/// their p beside that of a key whose score is 0; the score falls by one step for each term that is
/// counted, and the logarithm of p ÷ p tells how many those are. Only counts can be asked for: of
/// run()'s numbers those above 2^50 are masks, those above 2^-20 are counted, the others are not.
///
/// A column of the reduction is K/V head · keys + key; its one row is q.
class ScoreSums final : public Reduction {
 public:
  /// `keys`: those that are looked at, fewer than head_dim; `reference`: one that is not among
  /// them. `calls` must outlive it.
  ScoreSums(AttentionCalls& calls, std::vector<std::int64_t> keys, std::int64_t reference);

  [[nodiscard]] std::int64_t terms() const override { return calls_.shape().head_dim; }
  [[nodiscard]] std::int64_t rows() const override { return 1; }
  [[nodiscard]] std::int64_t columns() const override;
  [[nodiscard]] softfloat::Format input() const override { return wide_; }
  [[nodiscard]] softfloat::Format output() const override { return wide_; }
  [[nodiscard]] std::string description() const override;

 protected:
  Result<std::vector<float>> compute(std::span<const float> left,
                                     std::span<const float> right) override;

 private:
  /// The logarithm of p ÷ p of the reference for every column.
  [[nodiscard]] Result<std::vector<double>> logarithms(std::span<const float> right);

  AttentionCalls& calls_;
  std::vector<std::int64_t> keys_;
  std::int64_t reference_;
  softfloat::Format wide_;      ///< binary32: what counting needs, not what the layer reads
  std::optional<double> step_;  ///< of the logarithm for each counted term
  float query_ = 0;             ///< factors of masks, of what is counted, of the rest
  float mask_ = 0;
  float counted_ = 0;
  float rest_ = 0;
};

/// Keys whose scores are added alike.
struct RevealedScores {
  std::vector<std::int64_t> keys;
  AdditionTree tree;          ///< elements of head_dim as terms
  std::vector<Order> orders;  ///< of the grammar with these additions, the simplest first
};

/// How q·k is added.
struct ScoreFindings {
  std::vector<RevealedScores> classes;  ///< the largest first
  std::vector<std::int64_t> looked_at;  ///< keys
  std::string why_not;                  ///< empty where there are classes
};

/// The orders of q·k of the last query, for the first and the last keys of the first block, which
/// has `block` keys. What cannot be told is said in why_not. Errors: those of the back end.
[[nodiscard]] Result<ScoreFindings> find_scores(AttentionCalls& calls, std::int64_t block,
                                                std::uint64_t seed = 1);

}  // namespace kvsim::gpu
