// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/key_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Finds where blocks begin.
class BlockSearch {
 public:
  BlockSearch(std::int64_t keys, const AskKnowing& ask, std::int64_t most)
      : ask_(ask), most_(most), edges_{0, keys} {}

  Result<KeyBlocks> run() {
    for (std::optional<std::int64_t> next = 0; next;) {
      if (const auto done = look_at(*next); !done) return done.error();
      next = next_question();
    }
    KeyBlocks found;
    for (auto edge = edges_.begin(); std::next(edge) != edges_.end(); ++edge) {
      found.blocks.push_back({*edge, *std::next(edge), 0, 0});
    }
    if (const auto done = arrange(found.blocks); !done) return done.error();
    return found;
  }

 private:
  Result<bool> look_at(std::int64_t key) {
    if (static_cast<std::int64_t>(seen_.size()) >= most_) {
      return Error{ErrorKind::cannot_tell,
                   fmt::format("more than {} blocks of keys were asked about", most_)};
    }
    auto answer = ask_(key);
    if (!answer) return answer.error();
    for (std::size_t i = 1; i < answer->size(); ++i) {
      if ((*answer)[i] != (*answer)[i - 1]) edges_.insert(static_cast<std::int64_t>(i));
    }
    seen_.emplace(key, std::move(*answer));
    return true;
  }

  /// The first or last key of a block that nothing is known of, or the middle of a run of keys
  /// whose ends differ.
  std::optional<std::int64_t> next_question() {
    for (auto edge = edges_.begin(); std::next(edge) != edges_.end(); ++edge) {
      const std::int64_t first = *edge;
      const std::int64_t last = *std::next(edge) - 1;
      // The last one first: where blocks follow each other upward it shows its own edge.
      for (const std::int64_t key : {last, first}) {
        if (!seen_.contains(key)) return key;
      }
      if (seen_.at(first) == seen_.at(last)) continue;
      if (last - first == 1) {
        edges_.insert(last);
        return next_question();
      }
      const std::int64_t middle = first + (last - first) / 2;
      if (!seen_.contains(middle)) return middle;
      edges_.insert(seen_.at(first) == seen_.at(middle) ? middle + 1 : middle);
      return next_question();
    }
    return {};
  }

  [[nodiscard]] bool knows(const KeyBlock& block, const KeyBlock& raised) const {
    return seen_.at(raised.begin)[index(block.begin)] != 0;
  }

  /// Splits and positions. In one split, of two blocks exactly the later one knows of the other.
  Result<bool> arrange(std::vector<KeyBlock>& blocks) const {
    std::int64_t splits = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      std::optional<std::int64_t> split;
      for (std::size_t j = 0; j < i; ++j) {
        const bool later = knows(blocks[i], blocks[j]);
        const bool earlier = knows(blocks[j], blocks[i]);
        if (later && earlier) {
          return Error{ErrorKind::cannot_tell,
                       fmt::format("keys {} and {} know of each other's scores, but not the keys "
                                   "between them: no blocks of keys give that",
                                   blocks[j].begin, blocks[i].begin)};
        }
        if (later || earlier) split = blocks[j].split;
        if (later) ++blocks[i].position;
        if (earlier) ++blocks[j].position;
      }
      blocks[i].split = split.value_or(splits);
      if (!split) ++splits;
    }
    return true;
  }

  const AskKnowing& ask_;
  std::int64_t most_;
  std::set<std::int64_t> edges_;
  std::map<std::int64_t, KnowingKeys> seen_;
};

}  // namespace

std::string_view to_string(KeyDirection direction) {
  switch (direction) {
    case KeyDirection::first_to_last:
      return "first to last";
    case KeyDirection::last_to_first:
      return "last to first";
    case KeyDirection::other:
      return "neither";
    case KeyDirection::not_seen:
      break;
  }
  return "not seen";
}

std::int64_t KeyBlocks::splits() const {
  std::int64_t most = 0;
  for (const KeyBlock& block : blocks) most = std::max(most, block.split + 1);
  return most;
}

KeyDirection KeyBlocks::direction() const {
  bool up = false;
  bool down = false;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].split != blocks[i - 1].split) continue;
    (blocks[i].position > blocks[i - 1].position ? up : down) = true;
  }
  if (up && down) return KeyDirection::other;
  if (up) return KeyDirection::first_to_last;
  return down ? KeyDirection::last_to_first : KeyDirection::not_seen;
}

std::int64_t KeyBlocks::block_size() const {
  std::map<std::int64_t, int> sizes;
  for (const KeyBlock& block : blocks) ++sizes[block.end - block.begin];
  std::int64_t size = 0;
  int most = 0;
  for (const auto& [keys, count] : sizes) {
    if (count < most) continue;
    most = count;
    size = keys;
  }
  return size;
}

bool KeyBlocks::is_uniform() const {
  const std::int64_t size = block_size();
  std::map<std::int64_t, int> others;
  return std::ranges::all_of(blocks, [&](const KeyBlock& block) {
    return block.end - block.begin == size || ++others[block.split] == 1;
  });
}

std::vector<std::int64_t> KeyBlocks::keys_of_split(std::int64_t split) const {
  std::vector<std::int64_t> keys;
  for (const KeyBlock& block : blocks) {
    if (block.split != split) continue;
    keys.reserve(keys.size() + index(block.end - block.begin));
    for (std::int64_t key = block.begin; key < block.end; ++key) keys.push_back(key);
  }
  return keys;
}

Result<KeyBlocks> find_key_blocks(std::int64_t keys, const AskKnowing& ask, std::int64_t most) {
  return BlockSearch(keys, ask, most).run();
}

}  // namespace kvsim::gpu
