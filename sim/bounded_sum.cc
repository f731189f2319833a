// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/bounded_sum.h"

#include <cmath>
#include <cstddef>

#include "sim/engine/columns.h"
#include "sim/error_bounds.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

bool is_subset(const softfloat::Format& inner, const softfloat::Format& outer) {
  return inner.precision <= outer.precision && inner.emax() <= outer.emax() &&
         inner.emin() - inner.trailing_bits() >= outer.emin() - outer.trailing_bits() &&
         inner.emin() >= outer.emin();
}

bool fits_lanes(const softfloat::Format& format) { return is_subset(format, softfloat::binary32); }

/// On the vector engine; the values of both formats are floats.
void sum_in_lanes(const SumProblem& problem, BoundedValues& result) {
  const std::vector<float> factor(problem.factor.begin(), problem.factor.end());
  const std::vector<float> columns(problem.columns.begin(), problem.columns.end());
  std::vector<float> out(index(problem.column_count));
  const ColumnsProblem engine{.order = problem.order,
                              .product = problem.product,
                              .input = problem.input,
                              .accumulator = problem.accumulator,
                              .terms = problem.terms,
                              .columns = problem.column_count,
                              .stride = problem.stride,
                              .a = factor.empty() ? nullptr : factor.data(),
                              .b = columns.data()};
  // The problem was checked by the caller, so this cannot fail.
  static_cast<void>(
      sum_columns(engine, out, result.running, {.threads = 1, .level = problem.simd}));
  result.value.assign(out.begin(), out.end());
}

/// On softfloat, column by column; the running bound is the a-priori one.
void sum_in_softfloat(const SumProblem& problem, BoundedValues& result) {
  const auto bits = [&](double value) {
    return softfloat::convert(problem.input, softfloat::binary64, softfloat::from_double(value))
        .bits;
  };
  std::vector<softfloat::Bits> a(index(problem.terms), bits(1.0));
  std::vector<softfloat::Bits> b(index(problem.terms));
  for (std::size_t k = 0; k < problem.factor.size(); ++k) a[k] = bits(problem.factor[k]);
  for (std::int64_t j = 0; j < problem.column_count; ++j) {
    for (std::int64_t k = 0; k < problem.terms; ++k) {
      b[index(k)] = bits(problem.columns[index(k * problem.stride + j)]);
    }
    const softfloat::Rounded sum =
        sum_products(problem.order, problem.product, problem.input, problem.accumulator, a, b);
    result.value[index(j)] = softfloat::to_double(problem.accumulator, sum.bits);
  }
  result.running = result.a_priori;
}

std::vector<double> absolute_sums(const SumProblem& problem) {
  std::vector<double> sums(index(problem.column_count));
  for (std::int64_t k = 0; k < problem.terms; ++k) {
    const double factor = problem.factor.empty() ? 1.0 : std::abs(problem.factor[index(k)]);
    for (std::int64_t j = 0; j < problem.column_count; ++j) {
      sums[index(j)] += factor * std::abs(problem.columns[index(k * problem.stride + j)]);
    }
  }
  for (double& sum : sums) sum = outward(sum);
  return sums;
}

}  // namespace

BoundedSums bounded_sum(const SumProblem& problem) {
  const SumBound bound(RoundingUnits(problem.accumulator), problem.order, problem.terms);
  BoundedSums result{{}, absolute_sums(problem)};
  BoundedValues& sums = result.sums;
  sums.value.resize(index(problem.column_count));
  sums.running.resize(index(problem.column_count));
  for (const double absolute : result.absolute) sums.a_priori.push_back(bound(absolute));
  if (fits_lanes(problem.input) && fits_lanes(problem.accumulator)) {
    sum_in_lanes(problem, sums);
  } else {
    sum_in_softfloat(problem, sums);
  }
  for (std::size_t j = 0; j < sums.value.size(); ++j) {
    if (!std::isfinite(sums.value[j])) sums.running[j] = no_bound;
  }
  return result;
}

softfloat::Format common_format(const softfloat::Format& a, const softfloat::Format& b) {
  if (is_subset(a, b)) return b;
  if (is_subset(b, a)) return a;
  return is_subset(a, softfloat::binary32) && is_subset(b, softfloat::binary32)
             ? softfloat::binary32
             : softfloat::binary64;
}

}  // namespace kvsim
