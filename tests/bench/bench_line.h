// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::bench {

/// One line of the table.
struct Line {
  std::string name;
  std::string_view level;  ///< whose native loop it is compared with
  double operations = 0;   ///< multiply-adds of one run
  double at_most = 0;      ///< the ratio that it should not exceed; 0: none
  bool native = false;     ///< a native loop: the fastest of a level is the yardstick
  bool is_fused = true;    ///< compared with fused native loops, or with those that round twice
  std::function<bool()> run = {};
  /// The line of this level whose time for a multiply-add is the yardstick instead; "": the native
  /// loop.
  std::string base = {};
  /// Bytes of memory that a multiply-add reads: the yardstick is at least the time of reading them.
  double bytes = 0;
  std::vector<double> nanoseconds = {};  ///< for a multiply-add, one for each repetition

  [[nodiscard]] double median() const {
    std::vector<double> sorted = nanoseconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

/// Sums of four uniform numbers, close to normal ones, with 10 bits of fraction or fewer.
inline std::vector<float> numbers(std::int64_t count, std::uint64_t seed, double steps = 1024) {
  std::vector<float> out;
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int j = 0; j < 4; ++j) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state >> 40) / 0x1p24 - 0.5;
    }
    out.push_back(static_cast<float>(static_cast<std::int64_t>(sum * steps)) /
                  static_cast<float>(steps));
  }
  return out;
}

}  // namespace kvsim::bench
