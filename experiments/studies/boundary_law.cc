// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_law.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "experiments/statistics/cannot_tell.h"
#include "experiments/statistics/distributions.h"
#include "experiments/statistics/jackknife.h"
#include "experiments/statistics/probit.h"
#include "experiments/statistics/proportions.h"
#include "sim/predict/confidence.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t most_groups = 10;

using Chosen = std::function<bool(std::int64_t prompt)>;

/// The size of each source's error, from the steps of some prompts; 0 without steps.
std::vector<double> sizes_of(std::span<const LawStep> steps, const Chosen& chosen) {
  std::vector<double> squares;
  std::vector<double> counts;
  for (const LawStep& step : steps) {
    if (!chosen(step.prompt)) continue;
    if (step.source >= squares.size()) {
      squares.resize(step.source + 1);
      counts.resize(step.source + 1);
    }
    squares[step.source] += step.error * step.error;
    counts[step.source] += 1;
  }
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (counts[i] > 0) squares[i] = std::sqrt(squares[i] / counts[i]);
  }
  return squares;
}

double size_of(const std::vector<double>& sizes, const LawStep& step) {
  return step.source < sizes.size() ? sizes[step.source] : 0;
}

/// What a part of the prompts says.
struct Training {
  std::vector<double> sizes;
  statistics::Count flips;
  std::optional<statistics::ProbitFit> fit;
};

Result<Training> train(std::span<const LawStep> steps, const Chosen& chosen) {
  Training result;
  result.sizes = sizes_of(steps, chosen);
  // Margins of logits in a narrow format are few, so equal ones are counted together.
  std::map<double, statistics::Count> counts;
  for (const LawStep& step : steps) {
    const double size = size_of(result.sizes, step);
    if (!chosen(step.prompt) || !(size > 0)) continue;
    statistics::Count& count = counts[step.margin / size];
    ++count.trials;
    ++result.flips.trials;
    count.successes += step.flips ? 1 : 0;
    result.flips.successes += step.flips ? 1 : 0;
  }
  std::vector<double> rows;
  std::vector<double> events;
  std::vector<double> trials;
  rows.reserve(counts.size());
  events.reserve(counts.size());
  trials.reserve(counts.size());
  for (const auto& [margin, count] : counts) {
    rows.push_back(margin);
    events.push_back(static_cast<double>(count.successes));
    trials.push_back(static_cast<double>(count.trials));
  }
  auto fit = statistics::if_it_can_tell(statistics::probit_regression(
      {.predictors = 1, .rows = rows, .events = events, .trials = trials}));
  if (!fit) return fit.error();
  result.fit = std::move(*fit);
  return result;
}

/// The place of each prompt among all.
std::map<std::int64_t, std::int64_t> places_of(std::span<const LawStep> steps) {
  std::map<std::int64_t, std::int64_t> places;
  for (const LawStep& step : steps) places.emplace(step.prompt, 0);
  std::int64_t place = 0;
  for (auto& each : places) each.second = place++;
  return places;
}

statistics::Estimate without_interval(double value) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {value, nan, nan};
}

using Places = std::map<std::int64_t, std::int64_t>;

Result<bool> fit_all(std::span<const LawStep> steps, const Places& places, FlipLaw& law) {
  const Result<Training> all = train(steps, [](std::int64_t) { return true; });
  if (!all) return all.error();
  law.steps = all->flips.trials;
  law.flips = all->flips.successes;
  const std::optional<statistics::ProbitFit>& fit = all->fit;
  if (!fit) return true;
  const double constant = fit->coefficients[0].value.value;
  const double slope = fit->coefficients[1].value.value;
  law.constant = without_interval(constant);
  law.slope = without_interval(slope);
  law.pseudo_r2 = fit->pseudo_r2;
  std::vector<double> constants;
  std::vector<double> slopes;
  const std::int64_t groups = std::min(most_groups, std::ssize(places));
  for (std::int64_t group = 0; group < groups; ++group) {
    const Result<Training> part =
        train(steps, [&](std::int64_t prompt) { return places.at(prompt) % groups != group; });
    if (!part) return part.error();
    const std::optional<statistics::ProbitFit>& without = part->fit;
    if (!without) return true;  // no interval
    constants.push_back(without->coefficients[0].value.value);
    slopes.push_back(without->coefficients[1].value.value);
  }
  if (groups < 2) return true;
  const auto constant_interval = statistics::grouped_jackknife(constant, constants);
  if (!constant_interval) return constant_interval.error();
  const auto slope_interval = statistics::grouped_jackknife(slope, slopes);
  if (!slope_interval) return slope_interval.error();
  law.constant = *constant_interval;
  law.slope = *slope_interval;
  return true;
}

/// Predicts the steps of one half of the prompts from the other one.
Result<bool> predict_half(std::span<const LawStep> steps, const Places& places, std::int64_t half,
                          FlipLaw& law) {
  const auto is_there = [&](std::int64_t prompt) { return places.at(prompt) % 2 == half; };
  const Result<Training> other =
      train(steps, [&](std::int64_t prompt) { return !is_there(prompt); });
  if (!other) return other.error();
  for (const LawStep& step : steps) {
    const double size = size_of(other->sizes, step);
    if (!is_there(step.prompt) || !(size > 0)) continue;
    LawPrediction prediction{.prompt = step.prompt,
                             .margin = step.margin / size,
                             .error = step.error / size,
                             .flips = step.flips};
    prediction.base =
        static_cast<double>(other->flips.successes) / static_cast<double>(other->flips.trials);
    prediction.normal = statistics::normal_below(-prediction.margin);
    const std::optional<statistics::ProbitFit>& fit = other->fit;
    if (fit) {
      prediction.fitted = statistics::probit_probability(*fit, {&prediction.margin, 1});
    }
    law.predictions.push_back(prediction);
  }
  return true;
}

void judge(FlipLaw& law) {
  if (law.predictions.empty()) return;
  BrierScores sums{0, 0, 0};
  double fitted = 0;
  const bool all_fitted = std::ranges::all_of(
      law.predictions, [](const LawPrediction& each) { return each.fitted.has_value(); });
  for (const LawPrediction& each : law.predictions) {
    const auto squared = [&](double chance) {
      const double distance = chance - (each.flips ? 1 : 0);
      return distance * distance;
    };
    const double chance = each.fitted.value_or(0);
    sums.base += squared(each.base);
    sums.normal += squared(each.normal);
    sums.fitted = sums.fitted.value_or(0) + squared(chance);
    law.expected_normal += each.normal;
    fitted += chance;
  }
  const auto count = static_cast<double>(law.predictions.size());
  BrierScores scores{nine_digits(sums.base / count), nine_digits(sums.normal / count), {}};
  law.expected_normal = nine_digits(law.expected_normal);
  if (all_fitted) {
    scores.fitted = nine_digits(sums.fitted.value_or(0) / count);
    law.expected_fitted = nine_digits(fitted);
  }
  law.brier = scores;
}

Result<bool> compare_errors(FlipLaw& law) {
  std::vector<double> all;
  std::map<std::int64_t, std::vector<double>> prompts;
  all.reserve(law.predictions.size());
  for (const LawPrediction& each : law.predictions) {
    all.push_back(each.error);
    prompts[each.prompt].push_back(each.error);
  }
  if (all.empty()) return true;
  std::vector<double> middle;
  middle.reserve(prompts.size());
  for (const auto& [prompt, errors] : prompts) middle.push_back(errors[errors.size() / 2]);
  const auto normal = [](double x) { return statistics::normal_below(x); };
  const auto distance = statistics::kolmogorov_smirnov(all, normal);
  if (!distance) return distance.error();
  const auto by_prompt = statistics::kolmogorov_smirnov(middle, normal);
  if (!by_prompt) return by_prompt.error();
  law.ks_distance = distance->d;
  law.ks_by_prompt = *by_prompt;
  return true;
}

}  // namespace

Result<FlipLaw> flip_law(std::span<const LawStep> steps) {
  FlipLaw law;
  const Places places = places_of(steps);
  Result<bool> done = fit_all(steps, places, law);
  for (std::int64_t half = 0; done && half < 2; ++half) {
    done = predict_half(steps, places, half, law);
  }
  if (done) done = compare_errors(law);
  if (!done) return done.error();
  judge(law);
  return law;
}

}  // namespace kvsim::experiments
