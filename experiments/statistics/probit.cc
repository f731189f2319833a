// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/statistics/probit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/samples.h"
#include "sim/predict/confidence.h"

namespace kvsim::statistics {
namespace {

constexpr int most_steps = 200;
constexpr int most_halvings = 30;
constexpr double converged_below = 1e-10;
constexpr double dependent_below = 1e-10;  // of a pivot of the correlation matrix
constexpr double smallest_probability = 1e-300;

/// A symmetric positive definite matrix, as its lower triangular Cholesky factor.
class Cholesky {
 public:
  /// Nothing where a pivot is not above `threshold` times its diagonal element.
  static std::optional<Cholesky> make(std::vector<double> cells, std::size_t size,
                                      double threshold) {
    for (std::size_t row = 0; row < size; ++row) {
      for (std::size_t column = 0; column <= row; ++column) {
        const double element = cells[row * size + column];
        double rest = element;
        for (std::size_t i = 0; i < column; ++i) {
          rest -= cells[row * size + i] * cells[column * size + i];
        }
        if (column < row) {
          cells[row * size + column] = rest / cells[column * size + column];
        } else if (rest > threshold * element) {
          cells[row * size + row] = std::sqrt(rest);
        } else {
          return std::nullopt;
        }
      }
    }
    return Cholesky(std::move(cells), size);
  }

  /// L x = right.
  [[nodiscard]] std::vector<double> solve_lower(std::vector<double> right) const {
    for (std::size_t row = 0; row < size_; ++row) {
      for (std::size_t i = 0; i < row; ++i) right[row] -= cells_[row * size_ + i] * right[i];
      right[row] /= cells_[row * size_ + row];
    }
    return right;
  }

  /// L Lᵀ x = right.
  [[nodiscard]] std::vector<double> solve(std::vector<double> right) const {
    right = solve_lower(std::move(right));
    for (std::size_t row = size_; row-- > 0;) {
      for (std::size_t i = row + 1; i < size_; ++i)
        right[row] -= cells_[i * size_ + row] * right[i];
      right[row] /= cells_[row * size_ + row];
    }
    return right;
  }

 private:
  Cholesky(std::vector<double> cells, std::size_t size) : cells_(std::move(cells)), size_(size) {}

  std::vector<double> cells_;
  std::size_t size_;
};

/// The data with a leading 1 in every row and every predictor centred and scaled.
struct Design {
  std::size_t columns = 0;
  std::vector<double> rows;
  std::vector<double> means;  // [columns]; 0 and 1 for the constant
  std::vector<double> scales;
  std::vector<double> events;
  std::vector<double> trials;
};

std::optional<Error> check_data(const ProbitData& data) {
  const std::size_t observations = data.events.size();
  if (data.predictors < 1 ||
      data.rows.size() != observations * static_cast<std::size_t>(data.predictors) ||
      (!data.trials.empty() && data.trials.size() != observations)) {
    return Error{ErrorKind::usage,
                 fmt::format("a probit regression of {} rows of {} predictors from {} numbers and "
                             "{} trials; accepted: 1 predictor or more, and lists that fit",
                             observations, data.predictors, data.rows.size(), data.trials.size())};
  }
  if (auto error = check_finite("predictors", data.rows)) return error;
  if (auto error = check_finite("trials", data.trials)) return error;
  for (std::size_t i = 0; i < observations; ++i) {
    const double trials = data.trials.empty() ? 1 : data.trials[i];
    if (data.events[i] >= 0 && data.events[i] <= trials) continue;
    return Error{ErrorKind::usage, fmt::format("observation {}: {} events of {}; accepted: 0 to "
                                               "the trials",
                                               i + 1, data.events[i], trials)};
  }
  return std::nullopt;
}

Result<Design> make_design(const ProbitData& data) {
  const std::size_t observations = data.events.size();
  Design design;
  design.columns = static_cast<std::size_t>(data.predictors) + 1;
  design.rows.assign(observations * design.columns, 1);
  design.means.assign(design.columns, 0);
  design.scales.assign(design.columns, 1);
  design.events.assign(data.events.begin(), data.events.end());
  design.trials.assign(data.trials.begin(), data.trials.end());
  if (data.trials.empty()) design.trials.assign(observations, 1);
  if (observations < design.columns) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a probit regression of {} coefficients on {} observations",
                             design.columns, observations)};
  }
  std::vector<double> column(observations);
  for (std::size_t j = 1; j < design.columns; ++j) {
    for (std::size_t i = 0; i < observations; ++i) {
      column[i] = data.rows[i * (design.columns - 1) + j - 1];
    }
    const Moments found = moments(column);
    design.means[j] = found.mean;
    design.scales[j] = std::sqrt(found.squares / found.n);
    if (design.scales[j] == 0) {
      return Error{ErrorKind::cannot_tell, fmt::format("predictor {} is constant", j)};
    }
    for (std::size_t i = 0; i < observations; ++i) {
      design.rows[i * design.columns + j] = (column[i] - found.mean) / design.scales[j];
    }
  }
  return design;
}

/// The likelihood at some coefficients, and what the next step needs.
struct Point {
  double log_likelihood = 0;
  std::vector<double> score;
  std::vector<double> information;  // expected
};

Point evaluate(const Design& design, std::span<const double> coefficients) {
  const std::size_t size = design.columns;
  Point point{0, std::vector<double>(size), std::vector<double>(size * size)};
  for (std::size_t i = 0; i < design.events.size(); ++i) {
    const std::span<const double> row(&design.rows[i * size], size);
    double linear = 0;
    for (std::size_t j = 0; j < size; ++j) linear += row[j] * coefficients[j];
    const double yes = std::max(normal_below(linear), smallest_probability);
    const double no = std::max(normal_below(-linear), smallest_probability);
    const double with = design.events[i];
    const double without = design.trials[i] - with;
    if (with > 0) point.log_likelihood += with * logarithm(yes);
    if (without > 0) point.log_likelihood += without * logarithm(no);
    const double slope = normal_density(linear) / yes / no;
    const double residual = (with * no - without * yes) * slope;
    const double weight = design.trials[i] * slope * slope * yes * no;
    for (std::size_t j = 0; j < size; ++j) {
      point.score[j] += residual * row[j];
      for (std::size_t k = 0; k <= j; ++k) {
        point.information[j * size + k] += weight * row[j] * row[k];
      }
    }
  }
  return point;
}

/// Whether some predictor follows from the others.
bool is_dependent(const Design& design) {
  const std::size_t size = design.columns;
  std::vector<double> products(size * size);
  for (std::size_t i = 0; i < design.events.size(); ++i) {
    const std::span<const double> row(&design.rows[i * size], size);
    for (std::size_t j = 0; j < size; ++j) {
      for (std::size_t k = 0; k <= j; ++k) products[j * size + k] += row[j] * row[k];
    }
  }
  return !Cholesky::make(std::move(products), size, dependent_below);
}

/// Where the iteration ended.
struct Maximum {
  std::vector<double> coefficients;  // of the scaled predictors
  Point point;
  int iterations = 0;
};

/// Nothing where the likelihood has no maximum.
std::optional<Maximum> maximise(const Design& design) {
  Maximum at{std::vector<double>(design.columns), {}, 0};
  at.point = evaluate(design, at.coefficients);
  while (at.iterations < most_steps) {
    ++at.iterations;
    const auto factor = Cholesky::make(at.point.information, design.columns, 1e-14);
    if (!factor) return std::nullopt;
    std::vector<double> step = factor->solve(at.point.score);
    std::vector<double> next(design.columns);
    Point point;
    for (int halving = 0; halving <= most_halvings; ++halving) {
      for (std::size_t j = 0; j < next.size(); ++j) next[j] = at.coefficients[j] + step[j];
      point = evaluate(design, next);
      if (point.log_likelihood >= at.point.log_likelihood) break;
      for (double& x : step) x /= 2;
    }
    double moved = 0;
    for (std::size_t j = 0; j < next.size(); ++j) {
      moved = std::max(moved, std::fabs(step[j]) / (1 + std::fabs(next[j])));
    }
    at.coefficients = std::move(next);
    at.point = std::move(point);
    if (moved < converged_below) return at;
  }
  return std::nullopt;
}

/// Σ y log(y ÷ n) + (n − y) log(1 − y ÷ n): the likelihood with a share for each row.
double saturated(std::span<const double> events, std::span<const double> trials) {
  double sum = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const double without = trials[i] - events[i];
    if (events[i] > 0) sum += events[i] * logarithm(events[i] / trials[i]);
    if (without > 0) sum += without * logarithm(without / trials[i]);
  }
  return sum;
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

ProbitCoefficient coefficient(double value, double variance, double confidence) {
  ProbitCoefficient result;
  const double error = std::sqrt(variance);
  const double half = normal_half_width(confidence) * error;
  result.value = {nine_digits(value), nine_digits(value - half), nine_digits(value + half)};
  result.standard_error = nine_digits(error);
  result.z = nine_digits(value / error);
  result.p = nine_digits(normal_two_sided(value / error));
  return result;
}

/// Coefficients of the predictors as they were given. The constant is β₀ = γ₀ − Σ γ_j m_j ÷ s_j.
std::optional<std::vector<ProbitCoefficient>> unscaled(const Design& design, const Maximum& found,
                                                       double confidence) {
  const auto factor = Cholesky::make(found.point.information, design.columns, 1e-14);
  if (!factor) return std::nullopt;
  std::vector<ProbitCoefficient> result;
  result.reserve(design.columns);
  for (std::size_t j = 0; j < design.columns; ++j) {
    // The coefficient is a sum of γ with these weights w, its variance wᵀ (L Lᵀ)⁻¹ w = ‖L⁻¹ w‖².
    std::vector<double> weights(design.columns);
    weights[j] = 1 / design.scales[j];
    for (std::size_t k = 1; j == 0 && k < design.columns; ++k) {
      weights[k] = -design.means[k] / design.scales[k];
    }
    double value = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) value += weights[k] * found.coefficients[k];
    double variance = 0;
    for (const double part : factor->solve_lower(weights)) variance += part * part;
    result.push_back(coefficient(value, variance, confidence));
  }
  return result;
}

}  // namespace

Result<ProbitFit> probit_regression(const ProbitData& data, double confidence) {
  if (auto error = check_confidence(confidence)) return *error;
  if (auto error = check_data(data)) return *error;
  const Result<Design> design = make_design(data);
  if (!design) return design.error();
  const double events = sum_of(design->events);
  const double trials = sum_of(design->trials);
  if (events == 0 || events == trials) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("a probit regression of {} events in {} trials: nothing varies",
                             events, trials)};
  }
  if (is_dependent(*design)) {
    return Error{ErrorKind::cannot_tell, "a predictor follows from the others"};
  }
  const std::optional<Maximum> found = maximise(*design);
  std::optional<std::vector<ProbitCoefficient>> coefficients;
  if (found) coefficients = unscaled(*design, *found, confidence);
  if (!found || !coefficients) {
    return Error{ErrorKind::cannot_tell,
                 "a probit regression without a maximum: the predictors separate the events"};
  }
  ProbitFit fit;
  fit.coefficients = *coefficients;
  fit.iterations = found->iterations;
  const double log_likelihood = found->point.log_likelihood;
  const double none = saturated(std::vector<double>{events}, std::vector<double>{trials});
  fit.log_likelihood = nine_digits(log_likelihood);
  fit.null_log_likelihood = nine_digits(none);
  fit.deviance = nine_digits(2 * (saturated(design->events, design->trials) - log_likelihood));
  fit.pseudo_r2 = nine_digits(1 - log_likelihood / none);
  return fit;
}

double probit_probability(const ProbitFit& fit, std::span<const double> row) {
  double linear = fit.coefficients.front().value.value;
  for (std::size_t j = 0; j < row.size(); ++j) {
    linear += fit.coefficients[j + 1].value.value * row[j];
  }
  return nine_digits(normal_below(linear));
}

}  // namespace kvsim::statistics
