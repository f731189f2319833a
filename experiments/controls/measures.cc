// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/controls/predicted.h"
#include "experiments/statistics/samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {

void add_reason(ControlVerdict& verdict, std::string_view part, std::string_view reason) {
  auto found = std::ranges::find(verdict.reasons, reason, &ControlReason::text);
  if (found == verdict.reasons.end()) {
    found = verdict.reasons.insert(found, ControlReason{std::string(reason), {}});
  }
  std::vector<std::string>& parts = found->parts;
  if (!part.empty() && std::ranges::find(parts, part) == parts.end()) parts.emplace_back(part);
}

std::vector<const Json*> measured_values(const ControlRecords& records, int number,
                                         ControlVerdict& verdict) {
  std::vector<const Json*> measured;
  const auto found = records.find(number);
  if (found == records.end()) return measured;
  measured.reserve(found->second.size());
  for (const Json& values : found->second) {
    if (const auto reason = reason_of(values)) {
      add_reason(verdict, "", *reason);
    } else {
      measured.push_back(&values);
    }
  }
  return measured;
}

std::vector<double> numbers_of(std::span<const Json* const> values, const char* key) {
  std::vector<double> numbers;
  for (const Json* const each : values) {
    const Json& list = each->at(key);
    numbers.reserve(numbers.size() + list.size());
    for (const Json& number : list) {
      numbers.push_back(number_of(number).value_or(std::numeric_limits<double>::infinity()));
    }
  }
  return numbers;
}

double mean_of(std::span<const double> numbers) {
  return numbers.empty() ? 0 : statistics::moments(numbers).mean;
}

double apart_square(double on, double off) { return 2 * (on + off); }

double measured_apart_square(double on, double off, double ratio) {
  const double scale = ratio * ratio;
  return apart_square(std::min(on, off * scale), std::min(off, on / scale));
}

std::optional<Rounding> rounding_kl(const ControlRecords& records) {
  ControlVerdict ignored;
  std::vector<const Json*> values = measured_values(records, 3, ignored);
  std::erase_if(values, [](const Json* each) { return !each->contains("predicted_on"); });
  if (values.empty()) return {};
  const double on = mean_of(numbers_of(values, "predicted_on"));
  const double off = mean_of(numbers_of(values, "predicted_off"));
  const double factor = weights_allowance().factor;
  Rounding result{
      .predicted = on + off, .allowed = factor * factor * apart_square(on, off), .floor = {}};
  std::erase_if(values, [](const Json* each) { return !each->contains("floor_on"); });
  if (values.empty()) return result;
  const double ratio = values.front()->at("on_roundoff").get<double>() /
                       values.front()->at("off_roundoff").get<double>();
  result.floor = measured_apart_square(mean_of(numbers_of(values, "floor_on")),
                                       mean_of(numbers_of(values, "floor_off")), ratio);
  return result;
}

}  // namespace kvsim::experiments
