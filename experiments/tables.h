// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experiments/statistics/estimate.h"
#include "experiments/study.h"

/// Cells of summaries: what people see of a number, and the number.
namespace kvsim::experiments {

/// A text.
[[nodiscard]] SummaryCell cell(std::string_view text);
/// A count.
[[nodiscard]] SummaryCell cell(std::int64_t count);
/// A number to four significant digits; "-" and null for nothing, "inf" for an infinite one.
[[nodiscard]] SummaryCell cell(std::optional<double> number);
[[nodiscard]] SummaryCell cell(double number);
/// "12.5 % (4.9 to 28.1)" of a share, which is carried as value, low and high.
[[nodiscard]] SummaryCell percent_cell(const statistics::Estimate& share);

/// "4.975e-06 (3.1e-06 to 7.2e-06)", "-" for nothing; without the brackets where the ends are NaN,
/// because there is no interval.
[[nodiscard]] SummaryCell cell(const std::optional<statistics::Estimate>& estimate);
/// The same of a share, in percent.
[[nodiscard]] SummaryCell percent_cell(const std::optional<statistics::Estimate>& share);

/// The estimate for JSON; null for nothing.
[[nodiscard]] Json json_of(const std::optional<statistics::Estimate>& estimate);
/// The estimate for JSON: value, low, high.
[[nodiscard]] Json json_of(const statistics::Estimate& estimate);
/// The number for JSON: null for nothing, "inf" and "-inf" for infinite ones.
[[nodiscard]] Json json_of(std::optional<double> number);
/// A number that json_of() wrote. Throws Json::exception where it is none.
[[nodiscard]] std::optional<double> number_of(const Json& value);

}  // namespace kvsim::experiments
