// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/metrics/reproducibility.h"
#include "experiments/statistics/estimate.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// Steps of both arms along the reference, by prompt: 1 where it happened, 0 where not.
struct PrecisionSteps {
  std::vector<std::vector<double>> agree;  ///< the token is the reference's; both arms
  std::vector<std::vector<double>> flip;   ///< the arms choose different tokens
  std::vector<std::vector<double>> head;   ///< the second head counted; both arms
};

/// Of a row of the records. A margin replaces the one that texts were computed with; nothing: no
/// second head. Throws Json::exception.
[[nodiscard]] PrecisionSteps precision_steps(const StudyRecords& records, const std::string& row,
                                             std::optional<double> margin_ulps);

/// What the texts of a row say.
struct PrecisionTexts {
  std::int64_t texts = 0;   ///< pairs with and without the cache
  std::int64_t parted = 0;  ///< that are two texts
  std::int64_t steps = 0;   ///< along the reference, both arms
  double kl = 0;            ///< mean
  double largest_kl = 0;
  std::int64_t answers = 0;         ///< prompts with a known answer
  std::optional<double> div_index;  ///< mean of those that diverge
  metrics::Reproducibility metrics;
};
/// Throws Json::exception. Errors of metrics::reproducibility().
[[nodiscard]] Result<PrecisionTexts> precision_texts(const StudyRecords& records,
                                                     const std::string& row);

/// Mean with its interval over prompts; the mean alone where there are too few.
struct MeanOverPrompts {
  std::optional<double> mean;
  std::optional<statistics::Estimate> interval;
};
[[nodiscard]] Result<MeanOverPrompts> mean_over_prompts(
    const std::vector<std::vector<double>>& prompts, std::uint64_t stream);

}  // namespace kvsim::experiments
