// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim {

/// The sizes of one attention layer, each at least 1. Query head h reads K/V head
/// h ÷ (query_heads ÷ kv_heads). Query i of query_len sees keys 0 … kv_len − query_len + i.
struct AttentionShape {
  std::int64_t query_heads = 1;  ///< a multiple of kv_heads
  std::int64_t kv_heads = 1;
  std::int64_t query_len = 1;  ///< at most kv_len
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 1;

  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;

  /// Query heads that read one K/V head: the R of grouped-query attention.
  [[nodiscard]] std::int64_t group() const { return query_heads / kv_heads; }
  /// Keys that query i sees.
  [[nodiscard]] std::int64_t visible_keys(std::int64_t i) const {
    return kv_len - query_len + i + 1;
  }
};

}  // namespace kvsim
