// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "sim/attention_shape.h"
#include "sim/philox.h"
#include "softfloat/format.h"

namespace kvsim {

/// A uniform number at an address: an odd multiple of 2^−53 in (0, 1), all 2^52 of them equally
/// likely. The distribution is exactly symmetric about ½, and 1 − uniform is exact.
[[nodiscard]] constexpr double uniform(std::uint64_t seed, std::uint64_t stream,
                                       std::uint64_t index) {
  const std::uint64_t odd = 2 * (philox_bits(seed, stream, index) >> 12) + 1;
  return static_cast<double>(odd) * 0x1p-53;
}

/// A standard normal number at an address: normal_quantile(uniform(…)). At most 8.21 in magnitude.
[[nodiscard]] double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// What synthetic attention inputs look like.
enum class InputKind : std::uint8_t {
  gaussian,  ///< every element of q, k and v is standard normal
  /// As gaussian, but in each K head one channel in 32 (at least one) carries an offset ±U(4, 12)
  /// that is the same at every position, and 1.5 times the spread.
  /// Source: keys have a few fixed channels of large magnitude, values have none: Liu et al.,
  /// "KIVI", ICML 2024, section 3 and figure 2; Hooper et al., "KVQuant", NeurIPS 2024, section 3
  /// (evidence: documented). Sizes: SmolLM2-135M-Instruct, layers 0, 15 and 29 over 256 tokens of
  /// GSM8K, RoPE applied: 3.1 to 3.6 % of the K channels have a mean beyond 4 times the median
  /// channel deviation, the largest at 9 to 13 times, with 1.1 to 2.9 times the median deviation
  /// (evidence: measured, one model; that they hold elsewhere is assumed).
  outliers,
};

/// Inputs of one attention call, row-major, as encodings of `format`.
struct AttentionInputs {
  AttentionShape shape;
  softfloat::Format format;
  std::vector<softfloat::Bits> q;  ///< [query_heads, query_len, head_dim]
  std::vector<softfloat::Bits> k;  ///< [kv_heads, kv_len, head_dim]
  std::vector<softfloat::Bits> v;  ///< [kv_heads, kv_len, head_dim]
};

/// Synthetic inputs. Each element is a double rounded once to `format`, ties to even, and depends
/// only on (kind, seed, tensor, head, position, channel), for outliers also on head_dim: a longer
/// cache begins with the same keys and values as a shorter one.
[[nodiscard]] AttentionInputs generate_attention(InputKind kind, std::uint64_t seed,
                                                 const AttentionShape& shape,
                                                 const softfloat::Format& format);

/// The K channels of `head` that are outliers under InputKind::outliers, in increasing order.
[[nodiscard]] std::vector<std::int64_t> outlier_channels(std::uint64_t seed, std::int64_t head,
                                                         std::int64_t head_dim);

}  // namespace kvsim
