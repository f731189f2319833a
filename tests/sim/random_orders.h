// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/order_oracle.h"

/// Random orders for the oracle of order_oracle.h.
namespace order_oracle {

/// Lengths of the ranges that meet the item after `specs`, found by summing with a probe there.
inline bool all_groups_have(const Node& node, std::size_t length) {
  switch (node->kind) {
    case Tree::Kind::exact:
      return node->parts.size() == length;
    case Tree::Kind::addition:
      return all_groups_have(node->left, length) && all_groups_have(node->right, length);
    case Tree::Kind::rounded:
      return all_groups_have(node->left, length);
    case Tree::Kind::term:
    case Tree::Kind::partial_sum:
      return false;  // a scalar tail: no group at all
    case Tree::Kind::zero:
      break;
  }
  return true;
}

/// A random order over n terms, up to four items deep; a perm appears only where its length fits.
/// Partial sums are rounded to one of `formats` now and then.
inline std::vector<Spec> random_order(std::mt19937_64& random, std::int64_t n,
                                      const std::vector<std::string>& formats = {"bfloat16"}) {
  const auto below = [&random](std::uint64_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  std::vector<Spec> specs;
  const std::int64_t depth = 1 + below(4);
  while (static_cast<std::int64_t>(specs.size()) < depth) {
    Spec spec;
    spec.init = below(4) == 0;
    switch (below(12)) {
      case 0:
        spec.word = "sequential";
        break;
      case 1:
        spec.word = "reverse";
        break;
      case 2:
        spec.word = "perm";
        break;
      case 3:
        spec.word = "exact";
        break;
      case 4:
        spec.word = "pairwise";
        break;
      case 5:
        spec.word = "halving";
        break;
      case 6:
      case 7:
        spec.word = "lanes";
        spec.numbers = {1 + below(9), 1 + below(4)};
        spec.join = std::vector<std::string>{"pairwise", "halving", "sequential",
                                             "butterfly"}[random() % 4];
        spec.tail = std::vector<std::string>{"masked", "scalar", "scalar-first",
                                             "first-lane"}[random() % 4];
        if (spec.tail != "masked" && below(3) == 0) spec.multiple = 1 + below(12);
        if (below(4) == 0) spec.head = 1 + below(5);
        break;
      case 8:
        spec.word = "numpy-pairwise";
        break;
      case 9:
        spec.word = below(2) == 0 ? "torch-cascade" : "torch-dot";
        spec.numbers = {1 + below(9)};
        if (spec.word == "torch-dot") spec.numbers = {std::int64_t{1} << below(4)};
        if (spec.word == "torch-cascade" && below(3) == 0) spec.numbers.push_back(2);
        spec.init = false;
        break;
      default:
        spec.word = below(2) == 0 ? "blocks" : "split";
        spec.numbers = {1 + below(12)};
        if (spec.word == "split" && below(3) == 0) spec.multiple = 1 + below(8);
        spec.merge = std::vector<std::string>{"sequential", "reverse", "pairwise", "halving",
                                              "butterfly"}[random() % 5];
        if (below(3) == 0) spec.partials = formats[random() % formats.size()];
        if (below(3) == 0) spec.running = formats[random() % formats.size()];
        break;
    }
    if (spec.word == "perm") {
      std::vector<Spec> probe = specs;
      probe.push_back({.word = "exact"});
      const Node tree = build(probe, n);
      std::int64_t length = n;
      for (Node node = tree; node->kind != Tree::Kind::term;) {
        if (node->kind == Tree::Kind::exact) length = static_cast<std::int64_t>(node->parts.size());
        if (node->kind == Tree::Kind::rounded) {
          node = node->left;
          continue;
        }
        if (node->kind != Tree::Kind::addition) break;
        node = node->right;
      }
      if (length == 0 || !all_groups_have(tree, static_cast<std::size_t>(length))) continue;
      for (std::int64_t i = 0; i < length; ++i) spec.numbers.push_back(i);
      for (std::size_t i = spec.numbers.size(); i > 1; --i) {
        std::swap(spec.numbers[i - 1], spec.numbers[random() % i]);
      }
    }
    specs.push_back(spec);
    const std::vector<std::string> last = {"sequential",     "exact",         "pairwise", "halving",
                                           "numpy-pairwise", "torch-cascade", "torch-dot"};
    if (std::find(last.begin(), last.end(), spec.word) != last.end()) break;
    if (spec.head > 0 || spec.tail == "first-lane") break;
  }
  return specs;
}

}  // namespace order_oracle
