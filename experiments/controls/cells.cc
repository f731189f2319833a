// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/cells.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"
#include "experiments/protocol/along_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"
#include "sim/elementary_double.h"
#include "sim/predict/rounding.h"

namespace kvsim::experiments {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What predict says of the errors of the arms that round.
Result<std::vector<LogitErrors>> predicted_errors(const CellArms& arms) {
  std::vector<LogitErrors> errors;
  for (const StudyArm* const arm : {arms.first, arms.second}) {
    if (arm == arms.second && !arms.second_rounds) continue;
    const Result<std::vector<double>> drift = predicted_drift_of(*arm);
    if (!drift) return drift.error();
    errors.push_back({drift->back(), arm->engine->logit_format()});
  }
  return errors;
}

/// Adds what one step says.
Result<bool> add_measured(Distance& sum, std::span<const double> one, std::span<const double> two,
                          double share) {
  const auto apart = divergence(one, two);
  if (!apart) return apart.error();
  sum.kl += apart->kl * share;
  double square = 0;
  for (std::size_t i = 0; i < one.size(); ++i) square += (one[i] - two[i]) * (one[i] - two[i]);
  sum.square += square / static_cast<double>(one.size()) * share;
  return true;
}

Result<bool> add_predicted(Distance& sum, std::span<const double> logits,
                           const std::vector<LogitErrors>& errors, double share) {
  for (const LogitErrors& each : errors) {
    const Result<double> kl = predicted_kl(logits, each);
    if (!kl) return kl.error();
    sum.kl += *kl * share;
    sum.square += predicted_square(logits, each) * share;
  }
  return true;
}

/// The power of u that a quantity of these two sizes follows.
double power(double coarse, double fine, double bits) {
  return elementary::log2_double(coarse / fine) / bits;
}

}  // namespace

Result<CellDistance> distance_of(const StudySetup& setup, std::int64_t prompt,
                                 const CellArms& arms) {
  const Result<std::vector<LogitErrors>> errors = predicted_errors(arms);
  CellDistance sum{{}, errors ? Result<Distance>(Distance{}) : errors.error()};
  const double share = 1 / static_cast<double>(setup.new_tokens);
  const auto ids = tokens_of(setup, prompt);
  const std::array along{AlongArm{arms.text, ids}, AlongArm{arms.first, ids},
                         AlongArm{arms.second, ids}};
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    const std::vector<double>& second = step.passes[2].logits;
    Result<bool> done = add_measured(sum.measured, step.passes[1].logits, second, share);
    if (done && errors) done = add_predicted(*sum.predicted, second, *errors, share);
    return done;
  };
  const auto done = along_text(along, {.new_tokens = setup.new_tokens}, add);
  if (!done) return done.error();
  return sum;
}

void add_cell(Json& cells, const CellRow& row, const Result<CellDistance>& distance) {
  Json cell = {{"name", row.name}, {"family", row.family}, {"precision", row.precision}};
  if (!distance) {
    cell.update(not_applicable(distance.error().message));
  } else {
    cell["square"] = json_of(distance->measured.square);
    cell["kl"] = json_of(distance->measured.kl);
    if (const Result<Distance>& predicted = distance->predicted) {
      cell["predicted_square"] = json_of(predicted->square);
      cell["predicted_kl"] = json_of(predicted->kl);
    } else {
      cell["prediction_reason"] = predicted.error().message;
    }
  }
  cells.push_back(std::move(cell));
}

std::vector<CellFigures> cells_of(const ControlRecords& records, int number, Missing missing,
                                  ControlVerdict& verdict) {
  std::vector<CellFigures> cells;
  std::vector<const Json*> others;
  for (const Json* const values : measured_values(records, number, verdict)) {
    for (const Json& cell : values->at("cells")) {
      if (reason_of(cell)) {
        others.push_back(&cell);
        continue;
      }
      const auto name = cell.at("name").get<std::string>();
      auto found = std::ranges::find(cells, name, &CellFigures::name);
      if (found == cells.end()) {
        found = cells.insert(found, {.name = name,
                                     .family = cell.at("family").get<std::string>(),
                                     .precision = cell.at("precision").get<int>(),
                                     .measured = {},
                                     .predicted = Distance{}});
      }
      found->measured.square += number_of(cell.at("square")).value_or(infinity);
      found->measured.kl += number_of(cell.at("kl")).value_or(infinity);
      found->prompts += 1;
      if (!cell.contains("predicted_kl")) {
        found->predicted.reset();
        add_reason(verdict, name, cell.at("prediction_reason").get<std::string>());
      } else if (std::optional<Distance>& predicted = found->predicted) {
        predicted->square += number_of(cell.at("predicted_square")).value_or(infinity);
        predicted->kl += number_of(cell.at("predicted_kl")).value_or(infinity);
      }
    }
  }
  for (CellFigures& cell : cells) {
    for (double* const sum : {&cell.measured.square, &cell.measured.kl}) *sum /= cell.prompts;
    if (std::optional<Distance>& predicted = cell.predicted) {
      for (double* const sum : {&predicted->square, &predicted->kl}) *sum /= cell.prompts;
    }
  }
  for (const Json* const cell : others) {
    const bool has_other = std::ranges::find(cells, cell->at("family").get<std::string>(),
                                             &CellFigures::family) != cells.end();
    if (missing == Missing::if_all_are && has_other) continue;
    add_reason(verdict, cell->at("name").get<std::string>(), reason_of(*cell).value_or(""));
  }
  return cells;
}

void check_scaling(const std::vector<CellFigures>& cells, std::string_view family,
                   ControlVerdict& verdict) {
  std::vector<CellFigures> own;
  std::ranges::copy_if(cells, std::back_inserter(own), [&](const CellFigures& cell) {
    return cell.family == family && cell.precision > 0 && cell.measured.square > 0 &&
           cell.measured.kl > 0 && cell.predicted.has_value();
  });
  std::ranges::sort(own, {}, &CellFigures::precision);
  if (own.size() < 2 || own.front().precision == own.back().precision) return;
  const CellFigures& coarse = own.front();
  const CellFigures& fine = own.back();
  const std::optional<Distance>& of_coarse = coarse.predicted;
  const std::optional<Distance>& of_fine = fine.predicted;
  if (!of_coarse || !of_fine) return;
  const double bits = fine.precision - coarse.precision;
  const double slack = 2 * elementary::log2_double(step_allowance().factor) / bits;
  const double error = power(of_coarse->square, of_fine->square, bits) / 2;
  const double kl = power(of_coarse->kl, of_fine->kl, bits);
  verdict.checks.push_back(
      {.what = std::string(family) + ": error as u to the power",
       .measured = power(coarse.measured.square, fine.measured.square, bits) / 2,
       .low = error - slack,
       .high = error + slack,
       .predicted = error});
  verdict.checks.push_back({.what = std::string(family) + ": KL as u to the power",
                            .measured = power(coarse.measured.kl, fine.measured.kl, bits),
                            .low = kl - 2 * slack,
                            .high = kl + 2 * slack,
                            .predicted = kl});
}

}  // namespace kvsim::experiments
