// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/predict/confidence.h"
#include "sim/predict/margins.h"
#include "softfloat/format.h"

/// Which greedy tokens a change of the logits can flip.
namespace kvsim {

/// One trial: how far the logits of two tokens move from one kernel to the other.
struct LogitChange {
  double first = 0;
  double second = 0;

  /// The change of the difference between the two logits.
  [[nodiscard]] double of_difference() const { return first - second; }
};

/// The distribution of the change of the difference between two logits, in logits.
struct DifferenceErrors {
  std::int64_t trials = 0;
  double mean = 0;                  ///< signed
  double deviation = 0;             ///< root mean square
  double median_absolute = 0;       ///< |change|: half of the trials are at most that
  double absolute_99 = 0;           ///< 99 % of the trials are at most that
  double largest = 0;               ///< largest |change| seen
  double largest_upper_95 = 0;      ///< 95 % quantile of the largest of as many normal changes
  double share_beyond_largest = 0;  ///< at 95 % confidence, whatever the distribution
};

/// What is known about the distribution. No trials give zeros.
[[nodiscard]] DifferenceErrors summarize_changes(std::span<const LogitChange> changes);

/// The probability that the greedy token is another one, for one margin.
struct FlipRate {
  double margin = 0;        ///< in logits, before any rounding of the logits
  Proportion probability;   ///< from the trials, with its 95 % band
  double normal_model = 0;  ///< Φ(−margin ÷ deviation): what normal changes would give
};

/// How logits are compared.
struct LogitGrid {
  bool rounded = false;      ///< logits are rounded to `format` before they are compared
  softfloat::Format format;  ///< read only where `rounded`
  double top_logit = 0;      ///< size of the largest logit: decides the width of a step
  std::uint64_t seed = 1;    ///< where between two steps each trial's largest logit lies
};

/// The probability that the greedy token flips at a margin. Either of the two tokens of a trial may
/// be the one on top, so each trial counts twice. With rounded logits the top logit lies
/// anywhere within one step around `top_logit`, equal logits are won by the lower index, and each
/// of the two tokens may have it, so each trial counts four times. The band takes the trials as
/// independent of each other, but not the counts within one.
[[nodiscard]] FlipRate flip_rate(std::span<const LogitChange> changes, double margin,
                                 const LogitGrid& grid);

/// Expected flips among 1,000 tokens whose margins are spread as in `bins`, evenly within each bin;
/// low and high are the sums of the bands' ends.
[[nodiscard]] Proportion flips_per_thousand(std::span<const LogitChange> changes,
                                            std::span<const MarginBin> bins, const LogitGrid& grid);

}  // namespace kvsim
