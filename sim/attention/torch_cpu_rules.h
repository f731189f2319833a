// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "softfloat/format.h"
#include "softfloat/formats.h"

/// How PyTorch's flash attention on a CPU cuts queries, keys and products: docs/attention.md,
/// "PyTorch CPU flash".
namespace kvsim::attention::torch_cpu {

inline constexpr std::int64_t keys_of_a_block = 512;

[[nodiscard]] constexpr std::int64_t queries_of_a_block(std::int64_t query_len) {
  return query_len >= 768 ? 256 : query_len >= 192 ? 64 : 32;
}

/// Whether a product of this size runs in passes of fused multiply-adds.
[[nodiscard]] constexpr bool in_passes(std::int64_t rows, std::int64_t columns) {
  return rows >= 4 && columns >= 12;
}

/// Whether P·V of a block of so many queries goes through the keys in groups of four, where it does
/// not run in passes; otherwise key by key.
[[nodiscard]] constexpr bool in_fours(std::int64_t rows, const softfloat::Format& storage) {
  return rows == 1 && storage == softfloat::bfloat16;
}

/// Terms that a product over `terms` takes before it stores its sums.
[[nodiscard]] constexpr std::int64_t pass_length(std::int64_t terms) {
  constexpr std::int64_t usual = 192;
  return terms > usual && terms < 2 * usual ? terms / 2 : usual;
}

}  // namespace kvsim::attention::torch_cpu
