// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/sum_model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/engine/columns.h"
#include "sim/engine/matrix.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;
using softfloat::Format;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The codes of numbers of a format.
std::vector<Bits> codes(const Format& format, std::span<const float> values) {
  std::vector<Bits> result;
  result.reserve(values.size());
  for (const float value : values) {
    result.push_back(
        softfloat::convert(format, softfloat::binary32, softfloat::from_float(value)).bits);
  }
  return result;
}

Result<bool> sum_in_order(const SumModel& model, const Order& order, std::int64_t terms,
                          std::span<const float> left, std::span<const float> right,
                          std::vector<float>& sums) {
  MatrixProblem problem;
  problem.order = order;
  problem.product = model.product;
  problem.input = model.input;
  problem.accumulator = model.accumulator;
  problem.rows = static_cast<std::int64_t>(left.size()) / terms;
  problem.terms = terms;
  problem.columns = static_cast<std::int64_t>(right.size()) / terms;
  problem.a = left.data();
  problem.a_stride = terms;
  problem.b = right.data();
  problem.b_stride = terms;
  problem.b_transposed = true;
  return sum_matrix(problem, sums.data(), problem.columns);
}

Result<bool> sum_by_tree(const SumModel& model, std::int64_t terms, std::span<const float> left,
                         std::span<const float> right, const SumClass& only,
                         std::vector<float>& sums) {
  const std::int64_t columns = static_cast<std::int64_t>(right.size()) / terms;
  for (const std::int64_t i : only.rows) {
    const std::vector<Bits> a = codes(model.input, left.subspan(index(i * terms), index(terms)));
    for (const std::int64_t j : only.columns) {
      const std::vector<Bits> b = codes(model.input, right.subspan(index(j * terms), index(terms)));
      const auto sum =
          evaluate_tree(model.tree, model.product, model.input, model.accumulator, a, b);
      if (!sum) return sum.error();
      sums[index(i * columns + j)] = softfloat::to_float(model.accumulator, sum->bits);
    }
  }
  return true;
}

std::vector<std::int64_t> all_up_to(std::int64_t count) {
  std::vector<std::int64_t> all(index(count));
  for (std::int64_t i = 0; i < count; ++i) all[index(i)] = i;
  return all;
}

}  // namespace

Result<std::vector<float>> replay(const SumModel& model, std::int64_t terms,
                                  std::span<const float> left, std::span<const float> right,
                                  const SumClass* only) {
  const std::int64_t rows = static_cast<std::int64_t>(left.size()) / terms;
  const std::int64_t columns = static_cast<std::int64_t>(right.size()) / terms;
  std::vector<float> sums(index(rows * columns), 0.0F);
  const auto done =
      model.order
          ? sum_in_order(model, *model.order, terms, left, right, sums)
          : sum_by_tree(model, terms, left, right,
                        only != nullptr ? *only : SumClass{all_up_to(rows), all_up_to(columns)},
                        sums);
  if (!done) return done.error();
  if (model.mean) {
    for (float& sum : sums) sum /= static_cast<float>(terms);
  }
  if (const auto rounded = round_values(model.output, sums, sums); !rounded) {
    return rounded.error();
  }
  return sums;
}

}  // namespace kvsim::gpu
