// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "softfloat/suggest.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kvsim::softfloat {
namespace {

constexpr std::size_t longest = 64;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Optimal string alignment distance (Damerau-Levenshtein without overlapping exchanges).
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, longest + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

bool begins_with(std::string_view candidate, std::string_view word) {
  return candidate.size() >= word.size() &&
         std::equal(word.begin(), word.end(), candidate.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string_view nearest(std::string_view mistyped, std::span<const std::string_view> candidates) {
  if (mistyped.size() > longest) return {};
  const std::size_t limit = std::max<std::size_t>(1, mistyped.size() / 3);
  std::size_t best = limit + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::size_t edits = mistyped.size() >= 2 && begins_with(candidate, mistyped)
                                  ? std::min<std::size_t>(1, candidate.size() - mistyped.size())
                                  : distance(mistyped, candidate);
    if (edits < best && edits < candidate.size()) {
      best = edits;
      found = candidate;
    }
  }
  return found;
}

}  // namespace kvsim::softfloat
