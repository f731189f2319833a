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
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;
using softfloat::Format;

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

/// A sum along a tree of binary additions, part of which is kept in binary64.
class WideSum {
 public:
  WideSum(const SumModel& model, std::int64_t wide_from, std::span<const Bits> a,
          std::span<const Bits> b)
      : model_(model), wide_from_(wide_from), a_(a), b_(b) {}

  /// A number of binary64, before it is rounded to the output.
  Bits run() {
    values_.reserve(model_.tree.nodes.size());
    for (const SumNode& node : model_.tree.nodes) values_.push_back(value_of(node));
    return values_.back().wide ? values_.back().bits : widened(values_.back().bits);
  }

 private:
  struct Value {
    Bits bits = 0;
    bool wide = false;  ///< of binary64, else of the accumulator
  };

  [[nodiscard]] const Value& at(std::int32_t node) const { return values_[index(node)]; }
  [[nodiscard]] Bits widened(Bits bits) const {
    return softfloat::convert(softfloat::binary64, model_.accumulator, bits).bits;
  }
  [[nodiscard]] Value product(std::int64_t term) const {
    const Bits bits = softfloat::mul(model_.accumulator, a_[index(term)], b_[index(term)]).bits;
    const bool wide = term >= wide_from_;
    return {wide ? widened(bits) : bits, wide};
  }
  [[nodiscard]] Value sum(const Value& left, const Value& right) const {
    if (!left.wide && !right.wide) {
      return {softfloat::add(model_.accumulator, left.bits, right.bits).bits, false};
    }
    return {softfloat::add(softfloat::binary64, left.wide ? left.bits : widened(left.bits),
                           right.wide ? right.bits : widened(right.bits))
                .bits,
            true};
  }

  [[nodiscard]] Value value_of(const SumNode& node) const {
    switch (node.kind) {
      case SumNodeKind::term:
        return product(node.first);
      case SumNodeKind::add:
        return sum(at(node.left), at(node.right));
      case SumNodeKind::add_term: {
        const bool fused =
            model_.product != Product::rounded && node.first < wide_from_ && !at(node.left).wide;
        if (!fused) return sum(at(node.left), product(node.first));
        return {softfloat::fma(model_.accumulator, a_[index(node.first)], b_[index(node.first)],
                               at(node.left).bits)
                    .bits,
                false};
      }
      default:
        return {};
    }
  }

  const SumModel& model_;
  std::int64_t wide_from_;
  std::span<const Bits> a_;
  std::span<const Bits> b_;
  std::vector<Value> values_;
};

Result<bool> sum_by_tree(const SumModel& model, std::int64_t terms, std::span<const float> left,
                         std::span<const float> right, const SumClass& only,
                         std::vector<float>& sums) {
  const std::int64_t columns = static_cast<std::int64_t>(right.size()) / terms;
  for (const std::int64_t i : only.rows) {
    const std::vector<Bits> a = codes(model.input, left.subspan(index(i * terms), index(terms)));
    for (const std::int64_t j : only.columns) {
      const std::vector<Bits> b = codes(model.input, right.subspan(index(j * terms), index(terms)));
      if (const auto& wide_from = model.wide_from) {
        const Bits wide = WideSum(model, *wide_from, a, b).run();
        sums[index(i * columns + j)] = softfloat::to_float(
            model.output, softfloat::convert(model.output, softfloat::binary64, wide).bits);
        continue;
      }
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
