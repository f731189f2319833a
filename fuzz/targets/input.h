// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <span>
#include <string_view>

#include "softfloat/result.h"

/// What targets share that make values of their input instead of reading it as text.
namespace kvsim::targets {

/// Ends the process, which is a finding, where the condition does not hold, and says where:
/// scripts/fuzz-nightly tells findings apart by it.
inline void require(bool condition, std::source_location place = std::source_location::current()) {
  if (condition) return;
  std::fprintf(stderr, "requirement not met: %s:%u\n", place.file_name(), place.line());
  std::abort();
}

/// An error that a user may see: one line that is not too long.
inline void check_error(const Error& error) {
  require(!error.message.empty() && error.message.size() < 4000);
  for (const char character : error.message) require(static_cast<unsigned char>(character) >= ' ');
}

/// Values made of an input's bytes, one after another; zeros once they are used up. A change of one
/// byte changes one value, so that small steps of libFuzzer stay small.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  /// The next `count` ≤ 8 bytes as an integer, little-endian.
  std::uint64_t word(int count) {
    std::uint64_t value = 0;
    for (int i = 0; i < count && !bytes_.empty(); ++i) {
      value |= static_cast<std::uint64_t>(bytes_.front()) << (8 * i);
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }
  /// One byte, as a number from 0 to count − 1; count ≤ 256.
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(word(1)) % count; }
  /// One byte, as a number from `lowest` to `highest`.
  std::int64_t between(std::int64_t lowest, std::int64_t highest) {
    return lowest + below(highest - lowest + 1);
  }
  bool flag() { return word(1) % 2 == 1; }
  /// One byte, as an element; at most 256 are reached.
  template <class Range>
  auto& one_of(const Range& range) {
    return range[word(1) % std::size(range)];
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A bijective mix of 64 bits (SplitMix64's finaliser): numbers from a seed and a counter.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace kvsim::targets
