// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/reveal/attention/rescale_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Keys begin … end − 1 that share one maximum, and when they are added.
struct KeyBlock {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t split = 0;     ///< number of the split, by its first key
  std::int64_t position = 0;  ///< 0: the block that its split begins with

  friend bool operator==(const KeyBlock&, const KeyBlock&) = default;
};

/// In which direction the blocks of a split are taken.
enum class KeyDirection : std::uint8_t { not_seen, first_to_last, last_to_first, other };

/// "first to last", "last to first", "neither", "not seen".
[[nodiscard]] std::string_view to_string(KeyDirection direction);

/// How the keys of one row are cut.
struct KeyBlocks {
  std::vector<KeyBlock> blocks;  ///< by their first key; together they are all keys

  [[nodiscard]] std::int64_t splits() const;
  [[nodiscard]] KeyDirection direction() const;
  /// Keys of a block: the number that most blocks have, the larger one of two.
  [[nodiscard]] std::int64_t block_size() const;
  /// Whether all blocks have that size, but for one of each split.
  [[nodiscard]] bool is_uniform() const;
  /// The keys of a split, increasing.
  [[nodiscard]] std::vector<std::int64_t> keys_of_split(std::int64_t split) const;
};

/// Which keys know of the raised score of one.
using AskKnowing = std::function<Result<KnowingKeys>(std::int64_t raised)>;

/// Cuts `keys` keys into blocks: of two keys in one block each knows of the other's score, of two
/// blocks of one split the later knows of the earlier's, and splits know nothing of each other.
/// Blocks are taken for runs of keys; each has its first and last key asked about. Errors
/// (cannot_tell): answers that fit no blocks, more than `most` questions; those of `ask`.
[[nodiscard]] Result<KeyBlocks> find_key_blocks(std::int64_t keys, const AskKnowing& ask,
                                                std::int64_t most = 4096);

}  // namespace kvsim::gpu
