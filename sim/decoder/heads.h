// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvsim::decoder {

/// A matrix [tokens][heads · head_dim], as projections give it.
struct HeadLayout {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
};

/// The tokens first … first + count − 1 as [heads][count][head_dim], as attention reads them.
template <class T>
std::vector<T> heads_first(std::span<const T> x, const HeadLayout& layout, std::int64_t first,
                           std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(layout.heads * count * layout.head_dim));
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(x.data() + ((first + i) * layout.heads + head) * layout.head_dim, layout.head_dim,
                  out.data() + (head * count + i) * layout.head_dim);
    }
  }
  return out;
}

/// The way back: heads_first() of x would give `heads`.
template <class T>
void tokens_first(std::span<const T> heads, const HeadLayout& layout, std::int64_t first,
                  std::int64_t count, std::span<T> x) {
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(heads.data() + (head * count + i) * layout.head_dim, layout.head_dim,
                  x.data() + ((first + i) * layout.heads + head) * layout.head_dim);
    }
  }
}

}  // namespace kvsim::decoder
