// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// One attention query with seeded numbers, and what it gives without rounding.
namespace kvsim::experiments {

/// A query, keys and values, standard normal; a longer draw begins with the same keys.
struct AttentionDraw {
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::vector<double> q;             ///< [head_dim]
  std::vector<double> k;             ///< [keys][head_dim]
  std::vector<double> v;             ///< [keys][head_dim]
  std::vector<double> k_transposed;  ///< [head_dim][keys]

  /// The query with the first `count` keys alone.
  [[nodiscard]] AttentionDraw first(std::int64_t count) const;
};

/// The numbers of draw `number`, as they are or after a rounding of each.
template <class Rounding>
[[nodiscard]] AttentionDraw rounded_draw(AttentionDraw draw, const Rounding& rounding) {
  for (std::vector<double>* list : {&draw.q, &draw.k, &draw.v, &draw.k_transposed}) {
    for (double& each : *list) each = rounding(each);
  }
  return draw;
}
[[nodiscard]] AttentionDraw attention_draw(std::uint64_t number, std::int64_t keys,
                                           std::int64_t head_dim);

/// q·k ÷ √head_dim, softmax and Σ p·v in binary64, summed in order: some 10^−16 from exact.
[[nodiscard]] std::vector<double> plain_scores(const AttentionDraw& draw);
[[nodiscard]] std::vector<double> plain_softmax(std::span<const double> scores);
[[nodiscard]] std::vector<double> plain_values(const AttentionDraw& draw,
                                               std::span<const double> p);

/// ‖value − reference‖ ÷ ‖reference‖; 0 where the reference is 0.
[[nodiscard]] double relative_error(std::span<const double> value,
                                    std::span<const double> reference);

}  // namespace kvsim::experiments
