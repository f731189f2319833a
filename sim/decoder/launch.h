// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

namespace kvsim {

/// What else is in a launch, beside the rows of this sequence. It decides which kernels and splits
/// are chosen; the numbers of the neighbours change nothing of ours.
struct DecoderLaunch {
  std::int64_t batch = 1;  ///< sequences, this one included
  /// Keys of every sequence, this one's included; empty: all as long as this one.
  std::span<const std::int64_t> kv_lens = {};
  std::int64_t rows = 0;  ///< of a linear layer, all sequences together; 0: batch × ours
};

namespace decoder {

/// The rows that one pass computes together.
struct PassRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::span<const std::int64_t> positions = {};  ///< of RoPE; empty: first + i
  std::int64_t padding = 0;  ///< rows at the start of the sequence that no later query sees
  DecoderLaunch launch = {};
  std::int64_t known = 0;  ///< of these, at the start, whose keys and values the cache has already

  [[nodiscard]] std::int64_t computed() const { return count - known; }
  [[nodiscard]] std::int64_t end() const { return first + count; }
  /// One row behind others: the cache is what it reads.
  [[nodiscard]] bool is_decode() const { return count == 1 && first > 0; }
};

}  // namespace decoder
}  // namespace kvsim
