// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/evidence.h"

/// Margins between the two largest logits, as they occur along a text.
namespace kvsim {

/// Tokens whose margin lies in [from, to), in logits.
struct MarginBin {
  double from = 0;
  double to = 0;
  std::int64_t count = 0;

  friend bool operator==(const MarginBin&, const MarginBin&) = default;
};

/// How often each size of margin occurs, and how large the logits are there.
struct MarginHistogram {
  std::string name;    ///< the model and the text
  std::string source;  ///< how it was made
  std::vector<MarginBin> bins;
  double top_logit = 0;         ///< median of the largest logit
  std::int64_t vocabulary = 0;  ///< tokens that the largest logit is the largest of
  softfloat::Evidence evidence = softfloat::Evidence::measured;

  /// Tokens in all bins.
  [[nodiscard]] std::int64_t tokens() const;
};

/// The histogram of a real model that predict uses when none is given.
[[nodiscard]] const MarginHistogram& built_in_margins();

/// Bins a list of margins, each finite and at least 0: one bin below 2^−10 and two for each power
/// of two above. Only bins up to the largest margin are there; empty ones in between have count 0.
[[nodiscard]] std::vector<MarginBin> bin_margins(std::span<const double> margins);

}  // namespace kvsim
