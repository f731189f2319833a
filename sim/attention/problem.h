// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention_shape.h"
#include "sim/engine/numbers.h"
#include "softfloat/format.h"

/// One attention layer's inputs: sizes, mask, numbers, and how the kernel is launched.
namespace kvsim {

/// Which keys a query sees, and what becomes of its scores. Query i of a sequence stands at
/// position p = kv_len − query_len + i.
struct AttentionMask {
  bool causal = true;       ///< it sees keys 0 … p; otherwise all
  std::int64_t window = 0;  ///< it sees keys p − window + 1 … only; 0: no window
  float soft_cap = 0;       ///< c > 0: scores become c · tanh(score ÷ c); 0: none
  /// Keys before it are seen by no query: padding. Kernels that take no such mask, which are those
  /// of the online-tiles and paged families, accept 0 only.
  std::int64_t first_key = 0;
};

/// What else is in the launch, and what the caller fixes of it: kernels choose how they split the
/// keys by it.
struct AttentionLaunch {
  std::int64_t batch = 1;           ///< sequences in the launch, this one included
  std::int64_t longest_kv_len = 0;  ///< of the batch, at least kv_len; 0: kv_len
  /// Keys of every sequence of a launch whose lengths differ, this one's included: FlashAttention-3
  /// then gives each sequence splits of its own. Empty: the kernel is told the longest only.
  std::span<const std::int64_t> kv_lens = {};
  std::int64_t multiprocessors = 0;  ///< of the device; 0: those of the kernel's row
  std::int64_t splits = 0;           ///< forces the number of splits; 0: the kernel's heuristic
  std::int64_t split_size = 0;       ///< forces the keys of a split instead; 0: not
  std::int64_t cpu_threads = 1;      ///< of a kernel that runs on a CPU
  std::int64_t page_size = 16;       ///< keys of a page, where the kernel reads pages
  bool paged = false;                ///< K and V lie in pages, where a kernel's tiles depend on it
};

/// One attention layer: sizes, mask, launch, and the numbers, which are not owned.
struct AttentionProblem {
  /// Beyond what AttentionShape says, query_len may exceed kv_len: the first queries of a causal
  /// layer then see no key.
  AttentionShape shape;
  AttentionMask mask;
  softfloat::Format storage;  ///< of q, k, v and, unless the kernel says otherwise, of the output
  float scale = 0;            ///< of the scores; 0: 1 ÷ √head_dim in binary64, rounded to binary32
  /// Queries before it are in the launch but not computed: q and the results begin with it.
  std::int64_t first_query = 0;
  /// [query_heads][query_len − first_query][head_dim], numbers of `storage`
  const float* q = nullptr;
  NumberPointer k;  ///< [kv_heads][kv_len][head_dim], as floats or codes
  NumberPointer v;  ///< [kv_heads][kv_len][head_dim], as floats or codes
  /// Numbers from one K/V head to the next, in K and in V: a cache has room for more positions than
  /// it holds. 0: kv_len × head_dim.
  std::int64_t kv_head_stride = 0;
  AttentionLaunch launch;
};

}  // namespace kvsim
