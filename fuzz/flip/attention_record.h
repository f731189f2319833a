// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/attention/observer.h"

namespace kvsim::fuzz {

/// The numbers of one block of keys of one query head; those that the kernel has not stay empty.
struct BlockRecord {
  AttentionPlace place;
  std::map<AttentionStep, std::vector<float>> numbers = {};

  /// The numbers after a step; empty where it was not made.
  [[nodiscard]] std::span<const float> after(AttentionStep step) const {
    const auto found = numbers.find(step);
    return found == numbers.end() ? std::span<const float>() : found->second;
  }
};

/// One split of the keys.
struct SplitRecord {
  std::int64_t split = 0;
  std::vector<BlockRecord> blocks = {};  ///< in the order of the walk
  std::vector<float> output = {};        ///< split_output
  float log_sum = 0;
};

/// One query head.
struct HeadRecord {
  std::vector<SplitRecord> splits;
  std::vector<float> merged;  ///< merged_output; empty where nothing is merged
};

/// Keeps everything that a kernel shows of one query, by head.
class AttentionRecorder : public AttentionObserver {
 public:
  void see(AttentionStep step, const AttentionPlace& place,
           std::span<const float> numbers) override {
    HeadRecord& head = heads_[place.head];
    std::vector<float> copy(numbers.begin(), numbers.end());
    if (step == AttentionStep::merged_output) {
      head.merged = std::move(copy);
      return;
    }
    if (head.splits.empty() || head.splits.back().split != place.split) {
      head.splits.push_back({.split = place.split});
    }
    SplitRecord& split = head.splits.back();
    if (step == AttentionStep::split_output) {
      split.output = std::move(copy);
    } else if (step == AttentionStep::log_sum) {
      split.log_sum = numbers[0];
    } else {
      const bool is_new = split.blocks.empty() || !is_same_block(split.blocks.back(), place) ||
                          split.blocks.back().numbers.contains(step);
      if (is_new) split.blocks.push_back({.place = place});
      split.blocks.back().numbers[step] = std::move(copy);
    }
  }

  /// By number of the query head.
  [[nodiscard]] const std::map<std::int64_t, HeadRecord>& heads() const { return heads_; }

 private:
  static bool is_same_block(const BlockRecord& block, const AttentionPlace& place) {
    return block.place.first_key == place.first_key && block.place.keys == place.keys;
  }

  std::map<std::int64_t, HeadRecord> heads_;
};

}  // namespace kvsim::fuzz
