// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/tables.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

namespace kvsim::experiments {

SummaryCell cell(std::string_view text) { return {std::string(text), std::string(text)}; }

SummaryCell cell(std::int64_t count) { return {fmt::format("{}", count), count}; }

SummaryCell cell(std::optional<double> number) {
  return {number ? fmt::format("{:.4g}", *number) : "-", json_of(number)};
}

SummaryCell cell(double number) { return cell(std::optional(number)); }

SummaryCell percent_cell(const statistics::Estimate& share) {
  std::string text = fmt::format("{:.1f} %", 100 * share.value);
  if (!std::isnan(share.low)) {
    text += fmt::format(" ({:.1f} to {:.1f})", 100 * share.low, 100 * share.high);
  }
  return {std::move(text), json_of(share)};
}

SummaryCell cell(const std::optional<statistics::Estimate>& estimate) {
  if (!estimate) return {"-", nullptr};
  std::string text = fmt::format("{:.4g}", estimate->value);
  if (!std::isnan(estimate->low)) {
    text += fmt::format(" ({:.2g} to {:.2g})", estimate->low, estimate->high);
  }
  return {std::move(text), json_of(*estimate)};
}

SummaryCell percent_cell(const std::optional<statistics::Estimate>& share) {
  if (!share) return {"-", nullptr};
  return percent_cell(*share);
}

Json json_of(const std::optional<statistics::Estimate>& estimate) {
  return estimate ? json_of(*estimate) : Json(nullptr);
}

Json json_of(const statistics::Estimate& estimate) {
  return {{"value", json_of(estimate.value)},
          {"low", json_of(estimate.low)},
          {"high", json_of(estimate.high)}};
}

Json json_of(std::optional<double> number) {
  if (!number || std::isnan(*number)) return nullptr;
  if (std::isinf(*number)) return *number > 0 ? "inf" : "-inf";
  return *number;
}

std::optional<double> number_of(const Json& value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value.is_null()) return {};
  if (value == "inf") return infinity;
  if (value == "-inf") return -infinity;
  return value.get<double>();
}

}  // namespace kvsim::experiments
