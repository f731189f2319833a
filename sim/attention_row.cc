// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention_row.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/bounded_sum.h"
#include "sim/error_bounds.h"
#include "sim/exp.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

using softfloat::Format;

/// Single operations of the accumulator format on host doubles that hold its numbers.
class Accumulator {
 public:
  explicit Accumulator(const Format& format) : format_(format), units_(format) {}

  [[nodiscard]] double mul(double a, double b) const {
    return value(softfloat::mul(format_, bits(a), bits(b)));
  }
  /// a − b for numbers of any format, exact until one rounding.
  [[nodiscard]] double sub(double a, double b) const {
    return round_to(format_, score_difference(DoubleDouble(a), DoubleDouble(b)));
  }
  [[nodiscard]] double div(double a, double b) const {
    return value(softfloat::div(format_, bits(a), bits(b)));
  }
  [[nodiscard]] double exp(double a) const {
    return value(exp_correctly_rounded(format_, bits(a)));
  }
  [[nodiscard]] const RoundingUnits& units() const { return units_; }

 private:
  [[nodiscard]] softfloat::Bits bits(double a) const {
    return softfloat::convert(format_, softfloat::binary64, softfloat::from_double(a)).bits;
  }
  [[nodiscard]] double value(const softfloat::Rounded& result) const {
    return softfloat::to_double(format_, result.bits);
  }

  const Format& format_;
  RoundingUnits units_;
};

/// Rounds a bounded value to storage and widens its bounds. `exact_magnitude` bounds the exact
/// value for the a-priori bound.
void store(const Format& storage, const RoundingUnits& units, double exact_magnitude, double& value,
           double& running, double& a_priori) {
  const double before = value;
  value = round_to(storage, DoubleDouble(value));
  if (!std::isfinite(before)) {
    running = no_bound;  // a format without NaN and infinity makes a number of it
  } else if (units.saturates && std::abs(value) >= units.largest_finite) {
    running = outward(running + std::abs(before - value));
  } else {
    running = outward(running + rounding_error(units, value));
  }
  a_priori = outward(a_priori + rounding_error_before(units, outward(exact_magnitude + a_priori)));
}

}  // namespace

BoundedValues scores_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                            const AttentionRow& row) {
  const Accumulator accumulator(arithmetic.accumulator);
  const RoundingUnits storage_units(arithmetic.storage);
  const double u = accumulator.units().unit_roundoff;
  const double half_quantum = accumulator.units().half_quantum;
  const DoubleDouble factor =
      DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(row.head_dim)));
  const double scale = round_to(arithmetic.accumulator, factor);
  // The exact factor from above, and the relative error of the rounded one: at most u, but for a
  // subnormal factor (which may even be 0) the half quantum counts.
  const bool is_normal = scale >= accumulator.units().smallest_normal;
  const double exact_scale = outward(is_normal ? scale * (1 + 2 * u) : factor.high);
  const double scale_error = is_normal ? u : outward(half_quantum / factor.high);

  const SumProblem problem{.order = order,
                           .product = arithmetic.product,
                           .input = arithmetic.storage,
                           .accumulator = arithmetic.accumulator,
                           .terms = row.head_dim,
                           .factor = row.q,
                           .columns = row.k_transposed,
                           .column_count = row.keys,
                           .stride = row.key_stride,
                           .simd = row.simd};
  auto [result, absolute] = bounded_sum(problem);
  for (std::int64_t j = 0; j < row.keys; ++j) {
    double& value = result.value[index(j)];
    double& running = result.running[index(j)];
    double& a_priori = result.a_priori[index(j)];
    // The factor is off by scale_error, the product is rounded once more.
    const double computed = std::abs(value);
    value = accumulator.mul(value, scale);
    running = outward(exact_scale * (running + scale_error * computed) +
                      rounding_error(accumulator.units(), value));
    const double before = outward(absolute[index(j)] + a_priori);
    const double roundings = scale_error + u + scale_error * u;
    a_priori = outward(exact_scale * (a_priori + roundings * before) + half_quantum);
    if (arithmetic.round_scores) {
      store(arithmetic.storage, storage_units, exact_scale * absolute[index(j)], value, running,
            a_priori);
    }
    if (!std::isfinite(value)) running = no_bound;
  }
  return result;
}

SoftmaxOfRow softmax_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                            std::span<const double> scores, SimdLevel simd) {
  const Accumulator accumulator(arithmetic.accumulator);
  const RoundingUnits storage_units(arithmetic.storage);
  const double u = accumulator.units().unit_roundoff;
  const double half_quantum = accumulator.units().half_quantum;
  const std::size_t n = scores.size();

  double largest = scores[0];
  for (const double score : scores) largest = std::max(largest, score);
  std::vector<double> exponential(n);
  std::vector<double> exact(n);     // exp(score − largest), within 2^−52
  std::vector<double> relative(n);  // bounds on the relative error of each exponential
  double absolute_error = 0;
  double exact_sum = 0;
  bool all_finite = true;
  for (std::size_t j = 0; j < n; ++j) {
    const double difference = accumulator.sub(scores[j], largest);
    exponential[j] = accumulator.exp(difference);
    // The rounded difference is off by at most ε = u|d|, or half a quantum where it is subnormal,
    // so its exponential is off by e^ε; the model is correctly rounded.
    const double exact_difference = std::abs(scores[j] - largest);
    double difference_error = u * exact_difference;
    if (exact_difference > 0 && exact_difference < accumulator.units().smallest_normal) {
      difference_error = std::max(difference_error, half_quantum);
    }
    const double shift = expm1_above(outward(difference_error));
    exact[j] = exp_reference(score_difference(DoubleDouble(scores[j]), DoubleDouble(largest))).high;
    // Below 2^−1074 both exponentials are less than half a quantum, and so is their difference.
    relative[j] = exact[j] > 0 ? outward(shift + u * (1 + shift)) : 0.0;
    // A score may have overflowed, or a difference in a format without infinity. (Where a format
    // saturates, or has infinity, the exponential of the least number is 0 as it should be.)
    all_finite = all_finite && std::isfinite(exact_difference) && std::isfinite(exponential[j]);
    absolute_error += relative[j] * exact[j] + half_quantum;
    exact_sum += exact[j];
  }
  absolute_error = all_finite ? outward(absolute_error) : no_bound;

  SoftmaxOfRow result;
  const SumProblem problem{.order = order,
                           .product = Product::rounded,
                           .input = arithmetic.accumulator,
                           .accumulator = arithmetic.accumulator,
                           .terms = static_cast<std::int64_t>(n),
                           .factor = {},
                           .columns = exponential,
                           .column_count = 1,
                           .stride = 1,
                           .simd = simd};
  result.row_sum = bounded_sum(problem).sums;
  const double row_sum = result.row_sum.value[0];
  // The bound of the sum from the inputs alone: on exponentials that are off by absolute_error.
  const SumBound sum_bound(accumulator.units(), order, problem.terms);
  result.row_sum.a_priori[0] =
      outward(absolute_error + sum_bound(outward(exact_sum + absolute_error)));
  result.row_sum.running[0] = outward(result.row_sum.running[0] + absolute_error);

  // The exact row sum is at least 1, the term of the largest score. The quotient is
  // p̂ = (e(1 + ε) + ε') ÷ (l(1 + ε_l)) × (1 + δ) + δ': its distance to e ÷ l by the ratio bound.
  const double sum_below = std::max(1.0, exact_sum * (1 - 0x1p-31));
  const auto ratio_bound = [&](std::size_t j, double sum_error) {
    const double sum_relative = outward(sum_error / sum_below);
    if (!(sum_relative < 0.5)) return no_bound;
    const double exact_p = std::min(1.0, outward(exact[j] / sum_below));
    const double growth = (relative[j] + u + relative[j] * u + sum_relative) / (1 - sum_relative);
    return outward(exact_p * growth + 4 * half_quantum);
  };
  result.p.value.resize(n);
  result.p.running.resize(n);
  result.p.a_priori.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    double& value = result.p.value[j];
    double& running = result.p.running[j];
    double& a_priori = result.p.a_priori[j];
    value = accumulator.div(exponential[j], row_sum);
    running = ratio_bound(j, result.row_sum.running[0]);
    a_priori = ratio_bound(j, result.row_sum.a_priori[0]);
    if (all_finite && std::isfinite(row_sum)) {
      // Both numbers lie between 0 and the larger one: that bounds what the ratio cannot.
      running = std::min(running, std::max(value, outward(exact[j] / sum_below)));
    }
    if (arithmetic.round_p) {
      const double exact_p = std::min(1.0, outward(exact[j] / sum_below));
      store(arithmetic.storage, storage_units, exact_p, value, running, a_priori);
    }
    if (!std::isfinite(value)) running = no_bound;
  }
  return result;
}

BoundedValues values_of_row(const AttentionArithmetic& arithmetic, const Order& order,
                            const AttentionRow& row, std::span<const double> p) {
  const RoundingUnits storage_units(arithmetic.storage);
  const SumProblem problem{.order = order,
                           .product = arithmetic.product,
                           .input = common_format(p_format(arithmetic), arithmetic.storage),
                           .accumulator = arithmetic.accumulator,
                           .terms = row.keys,
                           .factor = p,
                           .columns = row.v,
                           .column_count = row.head_dim,
                           .stride = row.head_dim,
                           .simd = row.simd};
  auto [result, absolute] = bounded_sum(problem);
  if (!arithmetic.round_out) return result;
  for (std::size_t d = 0; d < result.value.size(); ++d) {
    store(arithmetic.storage, storage_units, absolute[d], result.value[d], result.running[d],
          result.a_priori[d]);
    if (!std::isfinite(result.value[d])) result.running[d] = no_bound;
  }
  return result;
}

BoundedValues attention_of_row(const AttentionArithmetic& arithmetic, const AttentionOrders& orders,
                               const AttentionRow& row) {
  const BoundedValues scores = scores_of_row(arithmetic, orders.scores, row);
  const SoftmaxOfRow softmax = softmax_of_row(arithmetic, orders.row_sum, scores.value, row.simd);
  BoundedValues output = values_of_row(arithmetic, orders.values, row, softmax.p.value);
  output.a_priori.clear();

  // Scores off by at most Δ change every exact probability by a factor within e^(±2Δ); on top come
  // the errors of the softmax of the computed scores and of the sum.
  double score_error = 0;
  for (const double bound : scores.running) score_error = std::max(score_error, bound);
  const double factor = expm1_above(outward(2 * score_error));
  for (std::int64_t d = 0; d < row.head_dim; ++d) {
    double inherited = 0;
    double of_softmax = 0;
    double least = row.v[index(d)];
    double greatest = least;
    for (std::int64_t j = 0; j < row.keys; ++j) {
      // p̂ is within running[j] of the exact softmax p' of the computed scores, and p' within a
      // factor of the exact p: |p' − p| ≤ (e^(2Δ) − 1)·p'.
      const double p_above = softmax.p.value[index(j)] + softmax.p.running[index(j)];
      const double v = row.v[index(j * row.head_dim + d)];
      inherited += std::abs(v) * (softmax.p.running[index(j)] + factor * p_above);
      of_softmax += std::abs(v) * softmax.p.running[index(j)];
      least = std::min(least, v);
      greatest = std::max(greatest, v);
    }
    // Under either softmax the output is a mean of the values: it cannot move further than they
    // are apart.
    if (std::isfinite(score_error)) {
      const double limited = of_softmax + (greatest - least);
      inherited = inherited < limited ? inherited : limited;
    }
    output.running[index(d)] = outward(output.running[index(d)] + inherited);
    if (std::isnan(output.running[index(d)])) output.running[index(d)] = no_bound;
  }
  return output;
}

}  // namespace kvsim
