// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/attention/problem.h"
#include "softfloat/mutants.h"

namespace kvsim::attention {

/// The keys begin … end − 1; none where end ≤ begin.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] bool empty() const { return end <= begin; }
  [[nodiscard]] std::int64_t size() const { return empty() ? 0 : end - begin; }
};

[[nodiscard]] inline KeyRange intersect(const KeyRange& a, const KeyRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// The keys that query i sees. Both ends grow with i.
[[nodiscard]] inline KeyRange visible_keys(const AttentionShape& shape, const AttentionMask& mask,
                                           std::int64_t i) {
  const std::int64_t position = shape.kv_len - shape.query_len + i;
  KeyRange range{0, shape.kv_len};
  if (mask.causal) range.end = std::min(range.end, position + 1);
  if (mask.window > 0) range.begin = std::max<std::int64_t>(0, position - mask.window + 1);
  if (mutant_is_on(Mutant::one_key_too_many)) range.end = std::min(range.end + 1, shape.kv_len);
  if (mutant_is_on(Mutant::window_too_wide) && range.begin > 0) --range.begin;
  range.begin = std::max(range.begin, mask.first_key);
  return range;
}

}  // namespace kvsim::attention
