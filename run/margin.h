// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "softfloat/format.h"

/// The largest logits, and how far apart they are.
namespace kvsim {

/// One token of a vocabulary with its logit.
struct TokenLogit {
  std::int64_t token = 0;
  double logit = 0;

  friend bool operator==(const TokenLogit&, const TokenLogit&) = default;
};

/// The `count` largest logits, largest first; of equal ones (−0 equals +0) the lower index comes
/// first. Fewer where the vocabulary is smaller. No logit may be NaN.
[[nodiscard]] std::vector<TokenLogit> largest_logits(std::span<const double> logits,
                                                     std::int64_t count);

/// How far the largest logit is above the next.
struct Margin {
  double logits =
      0;            ///< exact where the two have exponents less than 2^28 apart, else rounded once
  double ulps = 0;  ///< in units in the last place of the larger logit, in the storage format

  friend bool operator==(const Margin&, const Margin&) = default;
};

/// The margin of two finite logits, `first` ≥ `second`, that are stored in `storage`: an exact tie
/// is 0, and one step of the grid of logits as large as the first is 1 unit. The magnitude decides
/// the unit, never a fixed threshold: bfloat16 logits between 16 and 32 lie 0.125 apart.
[[nodiscard]] Margin margin(const softfloat::Format& storage, double first, double second);

/// By how much the difference of p's two largest logits is another one in q:
/// (q[first] − q[second]) − (p[first] − p[second]), in double-double, rounded once. Where it is
/// below −margin, q prefers the second. Nothing where p has fewer than two logits, q's list has
/// another length, or one of the four is not finite.
[[nodiscard]] std::optional<double> top_two_error(std::span<const double> p,
                                                  std::span<const double> q);

}  // namespace kvsim
