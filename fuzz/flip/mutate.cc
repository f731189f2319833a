// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/mutate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

/// A length up to `most`, short ones as likely as long ones.
std::int64_t pick_length(std::int64_t most, Random& random) {
  std::int64_t limit = 1;
  while (limit < most && !random.once_in(3)) limit *= 2;
  return random.between(1, std::min(limit, most));
}

double sign_of(double x) { return std::signbit(x) ? -1 : 1; }

}  // namespace

MutationWeights swarm_weights(Random& random) {
  MutationWeights weights{};
  for (std::size_t i = 0; i < mutation_count; ++i) {
    const auto mutation = static_cast<Mutation>(i);
    const bool always = mutation == Mutation::margin || mutation == Mutation::align;
    if (always || random.once_in(2)) {
      weights[i] =
          static_cast<std::uint8_t>(random.between(1, mutation == Mutation::exponent ? 8 : 4));
    }
  }
  return weights;
}

CaseTensor Mutator::pick_tensor(Random& random) const {
  if (shape_.kind == CaseKind::sum) {
    return random.once_in(2) ? CaseTensor::state : CaseTensor::tokens;
  }
  constexpr std::array tensors{CaseTensor::q, CaseTensor::k, CaseTensor::v, CaseTensor::v,
                               CaseTensor::tokens};
  return tensors[index(random.below(static_cast<std::int64_t>(tensors.size())))];
}

Mutator::Span Mutator::pick_span(Random& random) const {
  Span span;
  span.tensor = pick_tensor(random);
  span.columns = tensor_columns(shape_, span.tensor);
  const std::int64_t rows = tensor_size(shape_, span.tensor) / span.columns;
  span.row_count = random.once_in(4) ? rows : pick_length(rows, random);
  span.first_row = random.below(rows - span.row_count + 1);
  span.column_count = random.once_in(4) ? span.columns : pick_length(span.columns, random);
  span.first_column = random.below(span.columns - span.column_count + 1);
  return span;
}

void Mutator::change(FlipCase& flip_case, const Span& span,
                     const std::function<double(double)>& changed) const {
  std::vector<float>& values = flip_case[span.tensor];
  for (std::int64_t row = 0; row < span.row_count; ++row) {
    for (std::int64_t column = 0; column < span.column_count; ++column) {
      float& x = values[index((span.first_row + row) * span.columns + span.first_column + column)];
      x = fitter_.fit(span.tensor, changed(x));
    }
  }
}

void Mutator::flip_bits(FlipCase& child, Random& random) const {
  const Span span = pick_span(random);
  const std::int64_t bit = random.below(fitter_.storage().precision);
  const std::int64_t how = random.below(4);
  change(child, span, [&](double x) {
    int exponent = 0;
    const double significand = std::frexp(x, &exponent);  // 0.5 … 1
    const double step = std::ldexp(1.0, -static_cast<int>(bit) - 1);
    switch (how) {
      case 0:
        return std::ldexp(significand + step, exponent);
      case 1:
        return std::ldexp(significand - step, exponent);
      case 2:  // rounder: no bits behind this one
        return std::ldexp(std::trunc(significand / step) * step, exponent);
      default:  // all bits behind this one set
        return std::ldexp(std::trunc(significand / step) * step + sign_of(x) * step, exponent) *
               (1 - 0x1p-20);
    }
  });
}

void Mutator::copy_span(const FlipCase& from, FlipCase& child, Random& random) const {
  const Span to = pick_span(random);
  const std::int64_t rows = tensor_size(shape_, to.tensor) / to.columns;
  const bool same_place = &from != &child && random.once_in(2);
  const std::int64_t row = same_place ? to.first_row : random.below(rows - to.row_count + 1);
  const std::int64_t column =
      same_place ? to.first_column : random.below(to.columns - to.column_count + 1);
  // Both may lie in one tensor and overlap: what is copied is read first.
  std::vector<float> block;
  block.reserve(index(to.row_count * to.column_count));
  for (std::int64_t i = 0; i < to.row_count; ++i) {
    const auto first = from[to.tensor].begin() + (row + i) * to.columns + column;
    block.insert(block.end(), first, first + to.column_count);
  }
  for (std::int64_t i = 0; i < to.row_count; ++i) {
    std::copy_n(block.begin() + i * to.column_count, to.column_count,
                child[to.tensor].begin() + (to.first_row + i) * to.columns + to.first_column);
  }
}

void Mutator::narrow(FlipCase& child, Random& random) const {
  const Span span = pick_span(random);
  const std::vector<float>& values = child[span.tensor];
  int exponent = 0;
  static_cast<void>(
      std::frexp(values[index(random.below(static_cast<std::int64_t>(values.size())))], &exponent));
  exponent += static_cast<int>(random.between(-2, 2));
  const std::int64_t widths = random.between(1, 3);
  const bool keeps_sign = random.once_in(2);
  const bool round = random.once_in(2);
  change(child, span, [&](double x) {
    const double sign = keeps_sign ? sign_of(x) : random.once_in(2) ? -1 : 1;
    const double significand = round ? 0.5 : 0.5 + random.unit() / 2;
    return sign * std::ldexp(significand, exponent + static_cast<int>(random.below(widths)));
  });
}

void Mutator::apply(Mutation mutation, const ScoredCase& parent, const FlipCase& other,
                    FlipCase& child, Random& random) const {
  const bool sum = shape_.kind == CaseKind::sum;
  switch (mutation) {
    case Mutation::exponent: {
      const int step = static_cast<int>(random.once_in(4) ? random.between(2, 8) : 1);
      const int power = random.once_in(2) ? step : -step;
      return change(child, pick_span(random), [&](double x) { return std::ldexp(x, power); });
    }
    case Mutation::significand:
      return flip_bits(child, random);
    case Mutation::sign:
      return change(child, pick_span(random), [](double x) { return -x; });
    case Mutation::same_sign: {
      const double sign = random.once_in(2) ? 1 : -1;
      return change(child, pick_span(random), [&](double x) { return sign * std::abs(x); });
    }
    case Mutation::copy:
      return copy_span(child, child, random);
    case Mutation::narrow:
      return narrow(child, random);
    case Mutation::cross:
      if (random.once_in(2)) return copy_span(other, child, random);
      {
        const CaseTensor tensor = pick_tensor(random);
        child[tensor] = other[tensor];
        return;
      }
    case Mutation::cancel:
      return sum ? cancel_terms(child, random) : exchange_keys(child, random);
    case Mutation::absorb:
      return sum ? absorb_terms(child, random) : level_scores(child, random);
    case Mutation::margin:
      return sum ? move_sum_margin(parent.score, child, random) : align_tokens(child, true, random);
    case Mutation::align:
      return sum ? move_sum_margin(parent.score, child, random)
                 : align_tokens(child, false, random);
  }
}

FlipCase Mutator::seed(Random& random) const {
  FlipCase result = fitter_.random_case(shape_, random);
  const bool sum = shape_.kind == CaseKind::sum;
  for (int i = 0; i < 4; ++i) {
    if (!random.once_in(3)) continue;
    if (sum) {
      absorb_terms(result, random);
    } else {
      level_scores(result, random);
    }
  }
  if (!sum) align_tokens(result, false, random);
  return result;
}

void Mutator::move_margin(const FlipScore& score, FlipCase& child, bool align,
                          Random& random) const {
  if (shape_.kind == CaseKind::sum) {
    move_sum_margin(score, child, random);
  } else {
    align_tokens(child, !align, random);
  }
}

FlipCase Mutator::mutate(const ScoredCase& parent, const FlipCase& other,
                         const MutationWeights& weights, Random& random) const {
  FlipCase child = parent.flip_case;
  std::int64_t total = 0;
  for (const std::uint8_t weight : weights) total += weight;
  const std::int64_t count = random.once_in(2) ? 1 : random.between(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t left = random.below(total);
    std::size_t chosen = 0;
    while (left >= weights[chosen]) left -= weights[chosen++];
    apply(static_cast<Mutation>(chosen), parent, other, child, random);
  }
  // What changes elsewhere changes where the tie is.
  if (random.once_in(4) || !objective(shape_.target).seeks_ties) return child;
  if (shape_.kind == CaseKind::sum) {
    move_sum_margin(parent.score, child, random);
  } else {
    align_tokens(child, !random.once_in(3), random);
  }
  return child;
}

}  // namespace kvsim::fuzz
