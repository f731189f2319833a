// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/order_oracle_tree.h"

/// What the sums of NumPy and PyTorch do with a list of terms, statement by statement; for
/// order_oracle.h.
namespace order_oracle {

/// What NumPy's pairwise sum does with a list.
inline Node numpy_sum(const Terms& terms) {
  const std::size_t n = terms.size();
  if (n > 128) {
    std::size_t half = n / 2;
    half -= half % 8;
    const auto middle = terms.begin() + static_cast<std::ptrdiff_t>(half);
    return plus(numpy_sum({terms.begin(), middle}), numpy_sum({middle, terms.end()}));
  }
  if (n < 8) return add_up(terms, false);
  std::vector<Node> r;
  for (std::size_t j = 0; j < 8; ++j) r.push_back(term(terms[j]));
  std::size_t i = 8;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) r[j] = plus(r[j], term(terms[i + j]));
  }
  for (Node& node : r) node = accumulated(node);
  Node sum =
      plus(plus(plus(r[0], r[1]), plus(r[2], r[3])), plus(plus(r[4], r[5]), plus(r[6], r[7])));
  for (; i < n; ++i) sum = plus(sum, term(terms[i]));
  return sum;
}

/// An accumulator of PyTorch's sum: += leaves a +0 on either side out, unless a term is added.
inline void accumulate_node(Node& total, const Node& part) {
  if (part->kind == Tree::Kind::zero) return;
  total =
      total->kind == Tree::Kind::zero && part->kind != Tree::Kind::term ? part : plus(total, part);
}

/// An element of a row is added in any case, be the accumulator +0 or not.
inline void add_element(Node& total, const Node& element) { total = plus(total, element); }

/// What ATen's multi_row_sum and row_sum do with the vectors' elements of one lane, statement by
/// statement.
inline Node torch_row_sum(const std::vector<Node>& row) {
  constexpr std::size_t ilp = 4;
  constexpr std::size_t levels = 4;
  const std::size_t size = row.size() / ilp;
  std::size_t log = 1;
  while ((std::size_t{1} << log) < size) ++log;
  const std::size_t power = std::max<std::size_t>(4, log / levels);
  std::vector<std::vector<Node>> acc(levels, std::vector<Node>(ilp, zero()));
  std::size_t i = 0;
  while (i + (std::size_t{1} << power) <= size) {
    for (std::size_t j = 0; j < std::size_t{1} << power; ++j, ++i) {
      for (std::size_t k = 0; k < ilp; ++k) add_element(acc[0][k], row[i * ilp + k]);
    }
    for (std::size_t j = 1; j < levels; ++j) {
      for (std::size_t k = 0; k < ilp; ++k) {
        accumulate_node(acc[j][k], acc[j - 1][k]);
        acc[j - 1][k] = zero();
      }
      const std::size_t mask = ((std::size_t{1} << power) - 1) << (j * power);
      if ((i & mask) != 0) break;
    }
  }
  for (; i < size; ++i) {
    for (std::size_t k = 0; k < ilp; ++k) add_element(acc[0][k], row[i * ilp + k]);
  }
  for (std::size_t j = 1; j < levels; ++j) {
    for (std::size_t k = 0; k < ilp; ++k) accumulate_node(acc[0][k], acc[j][k]);
  }
  for (std::size_t k = size * ilp; k < row.size(); ++k) add_element(acc[0][0], row[k]);
  for (std::size_t k = 1; k < ilp; ++k) accumulate_node(acc[0][0], acc[0][k]);
  return acc[0][0];
}

/// What ATen's vectorized_inner_sum does with a list, W numbers to a vector; with `paired`, a
/// vector is the sum of two that lie side by side.
inline Node torch_sum(const Terms& terms, std::size_t width, bool paired) {
  std::size_t loaded = paired ? 2 * width : width;
  std::vector<Node> numbers;
  for (const std::int64_t i : terms) numbers.push_back(term(i));
  if (terms.size() < loaded) width = loaded = 1;
  std::vector<std::vector<Node>> rows(width);
  const std::size_t body = terms.size() / loaded * loaded;
  for (std::size_t i = 0; i < body; i += loaded) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      const Node low = numbers[i + lane];
      const Node high = loaded > width ? numbers[i + lane + width] : nullptr;
      rows[lane].push_back(high == nullptr ? low : plus(accumulated(low), accumulated(high)));
    }
  }
  Node total = zero();
  for (std::size_t i = body; i < terms.size(); ++i) accumulate_node(total, numbers[i]);
  for (const std::vector<Node>& row : rows) accumulate_node(total, torch_row_sum(row));
  return total;
}

/// What ATen's dot product of 16-bit numbers does, register by register of `width` floats.
inline Node torch_dot(const Terms& terms, std::size_t width) {
  const auto lanes_from = [&](std::size_t begin, std::size_t end, std::size_t lanes) {
    std::vector<Node> sums(lanes, zero());
    for (std::size_t i = begin; i < end; ++i) {
      Node& sum = sums[(i - begin) % lanes];
      sum = plus(sum, term(terms[i]));
    }
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] = plus(sums[i], accumulated(sums[i + half]));
    }
    return sums[0];
  };
  const std::size_t n = terms.size();
  const std::size_t whole = n / (8 * width) * (8 * width);
  const std::size_t vectors = whole + (n - whole) / (2 * width) * (2 * width);
  Node sum = whole > 0 ? lanes_from(0, whole, 8 * width) : zero();
  if (vectors > whole) {
    const Node rest = lanes_from(whole, vectors, width);
    sum = whole > 0 ? plus(sum, accumulated(rest)) : rest;
  }
  for (std::size_t i = vectors; i < n; ++i) sum = plus(sum, term(terms[i]));
  return sum;
}

}  // namespace order_oracle
