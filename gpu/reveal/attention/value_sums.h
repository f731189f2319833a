// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/reduction.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The sums P·V of a layer as a reduction. Queries are 0, so all scores are equal, all p are one
/// number, and an output is the mean of the values of some keys: the others have scores so low that
/// their p is 0. A column of the reduction is a column of V: K/V head · head_dim + element; a row
/// is a query and a head of the group: query · group + head, of a causal layer the last query.
class ValueSums final : public Reduction {
 public:
  /// `keys`: those that count, increasing; empty: all. `calls` must outlive it.
  explicit ValueSums(AttentionCalls& calls, std::vector<std::int64_t> keys = {});

  [[nodiscard]] std::int64_t terms() const override {
    return static_cast<std::int64_t>(keys_.size());
  }
  [[nodiscard]] std::int64_t rows() const override;
  [[nodiscard]] std::int64_t columns() const override;
  [[nodiscard]] bool has_left() const override { return false; }
  [[nodiscard]] bool is_mean() const override { return true; }
  [[nodiscard]] softfloat::Format input() const override { return calls_.layer().format; }
  [[nodiscard]] softfloat::Format output() const override { return calls_.output(); }
  [[nodiscard]] std::string description() const override { return calls_.description(); }

 protected:
  Result<std::vector<float>> compute(std::span<const float> left,
                                     std::span<const float> right) override;

 private:
  AttentionCalls& calls_;
  std::vector<std::int64_t> keys_;
};

/// Where the result of row `row`, column `column` of the sums stands among a layer's outputs.
[[nodiscard]] std::int64_t output_of_sum(const AttentionLayer& layer, std::int64_t row,
                                         std::int64_t column);

}  // namespace kvsim::gpu
