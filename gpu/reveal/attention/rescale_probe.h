// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/reveal/attention/attention_calls.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// For every key: whether its value was multiplied by a p that knew of the raised score.
using KnowingKeys = std::vector<char>;

/// Raises the score of one key above all others, which are equal. A kernel that walks over the
/// keys has added the values of earlier blocks with p = 1 before it meets the new maximum, and
/// multiplies their sum by the rescale factor afterwards; the values of the same block and of later
/// ones are multiplied by the small p at once. Where p = 1, two values of 3/4 of the largest power
/// of two overflow the accumulator, and where p is small they do not. In binary16, whose values do
/// not overflow a binary32 accumulator, p is rounded to binary16 but the rescale factor is not: the
/// difference to what the raised key subtracts is a fraction of a unit in the last place.
///
/// It takes two neighbours to overflow: a single key before the raised one is not told from it.
class RescaleProbe {
 public:
  /// Looks at the sums of one row of ValueSums. `calls` must outlive it.
  RescaleProbe(AttentionCalls& calls, std::int64_t row) : calls_(calls), row_(row) {}

  /// How a key is seen to know: the second way is there for binary16 only.
  enum class Sign : std::uint8_t { overflow, fraction };
  /// Where a kernel does not round p, or divides it by the row sum first, fractions say nothing.
  void ignore(Sign sign) { (sign == Sign::overflow ? overflow_ : fraction_) = false; }
  void heed(Sign sign) { (sign == Sign::overflow ? overflow_ : fraction_) = true; }

  /// The score of `raised` is about `log2_rise` ÷ log2 e above all others.
  [[nodiscard]] Result<KnowingKeys> knowing(std::int64_t raised, double log2_rise);
  /// The same for one other key, in as few calls as possible.
  [[nodiscard]] Result<bool> knows(std::int64_t key, std::int64_t raised, double log2_rise);
  /// The rise that is made of `log2_rise`: formats have not every number.
  [[nodiscard]] double possible_rise(double log2_rise) const;

 private:
  /// Two factors whose product, scaled, is the rise.
  struct Rise {
    float query = 0;
    float small = 1;  ///< what p of the other keys is rounded to
    float ulp = 1;    ///< the unit in the last place of `small`
  };
  [[nodiscard]] bool is_narrow() const { return calls_.layer().format.exponent_bits < 8; }
  [[nodiscard]] Rise rise(double log2_rise) const;
  [[nodiscard]] AttentionOperands operands(std::int64_t raised, const Rise& rise) const;
  /// The output of the row at a column of V.
  [[nodiscard]] float at(const std::vector<float>& outputs, std::int64_t column) const;
  [[nodiscard]] std::int64_t columns() const {
    return calls_.shape().kv_heads * calls_.shape().head_dim;
  }
  float& value(AttentionOperands& operands, std::int64_t key, std::int64_t column) const;

  /// Marks as unknowing what overflows: keys first … last and their neighbours.
  Result<bool> find_overflow(std::int64_t raised, const Rise& rise, std::int64_t first,
                             std::int64_t last, KnowingKeys& keys);
  /// Marks as unknowing what is no multiple of a unit in the last place.
  Result<bool> find_fractions(std::int64_t raised, const Rise& rise, std::int64_t first,
                              std::int64_t last, KnowingKeys& keys);

  AttentionCalls& calls_;
  std::int64_t row_;
  bool overflow_ = true;
  bool fraction_ = true;
};

}  // namespace kvsim::gpu
