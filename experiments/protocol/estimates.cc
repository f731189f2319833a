// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/estimates.h"

#include <fmt/format.h>

#include <optional>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {

Result<Json> mean_estimate(std::span<const std::vector<double>> prompts) {
  if (prompts.size() < 2) {
    return Json{{"value", json_of(statistics::moments(prompts.front()).mean)},
                {"low", nullptr},
                {"high", nullptr}};
  }
  const auto drawn = statistics::bootstrap_mean(prompts, {.resamples = 2000});
  if (!drawn) return drawn.error();
  return json_of(drawn->percentile);
}

SummaryCell range_cell(const Json& estimate) {
  const std::optional<double> value = number_of(estimate.at("value"));
  const std::optional<double> low = number_of(estimate.at("low"));
  const std::optional<double> high = number_of(estimate.at("high"));
  if (!value || !low || !high) return {cell(value).text, estimate};
  return {fmt::format("{:.3g} ({:.2g} to {:.2g})", *value, *low, *high), estimate};
}

}  // namespace kvsim::experiments
