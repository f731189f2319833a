// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/order_oracle_libraries.h"
#include "tests/sim/order_oracle_tree.h"

/// Summation trees built the slow way: every item of an order, read from its definition, makes
/// lists of terms and puts tree nodes together. Shares no code with sim/; orders are described by
/// Spec, not by kvsim::Order, and reach the code under test as text only.
namespace order_oracle {

/// One item: its word, numbers and options as they stand in the text.
struct Spec {
  std::string word;
  std::vector<std::int64_t> numbers = {};
  std::string join = "pairwise";
  std::string tail = "masked";
  bool init = false;
  std::int64_t multiple = 1;
  std::int64_t head = 0;
  std::string merge = "sequential";
  std::string partials = {};  ///< a format, or empty
  std::string running = {};
};

inline std::string text(const Spec& spec) {
  std::vector<std::string> arguments;
  arguments.reserve(spec.numbers.size() + 3);
  for (const std::int64_t number : spec.numbers) arguments.push_back(std::to_string(number));
  if (spec.join != "pairwise") arguments.push_back("join=" + spec.join);
  if (spec.tail != "masked") arguments.push_back("tail=" + spec.tail);
  if (spec.multiple != 1) arguments.push_back("multiple=" + std::to_string(spec.multiple));
  if (spec.head != 0) arguments.push_back("head=" + std::to_string(spec.head));
  if (spec.merge != "sequential") arguments.push_back("merge=" + spec.merge);
  if (!spec.partials.empty()) arguments.push_back("partials=" + spec.partials);
  if (!spec.running.empty()) arguments.push_back("running=" + spec.running);
  if (spec.init) arguments.emplace_back("init=zero");
  std::string list;
  for (const std::string& argument : arguments) list += (list.empty() ? "" : ",") + argument;
  return list.empty() ? spec.word : spec.word + "(" + list + ")";
}

inline std::string text(const std::vector<Spec>& specs) {
  std::string all;
  for (const Spec& spec : specs) all += (all.empty() ? "" : "/") + text(spec);
  return all;
}

Node build(const std::vector<Spec>& specs, std::size_t depth, const Terms& terms);

/// What stands inside item `depth`, for one of its accumulators.
inline Node accumulate(const std::vector<Spec>& specs, std::size_t depth, const Terms& terms) {
  // A plain sequential is what an item without anything inside does.
  const bool plain = depth + 1 == specs.size() ||
                     (specs[depth + 1].word == "sequential" && !specs[depth + 1].init);
  if (plain) return add_up(terms, specs[depth].init);
  const Node inner = build(specs, depth + 1, terms);
  return specs[depth].init ? plus(zero(), accumulated(inner)) : inner;
}

inline Node build_lanes(const std::vector<Spec>& specs, std::size_t depth, const Terms& terms) {
  const Spec& spec = specs[depth];
  const auto width = static_cast<std::size_t>(spec.numbers[0]);
  const auto count = static_cast<std::size_t>(spec.numbers[1]);
  const std::size_t first = std::min(terms.size(), static_cast<std::size_t>(spec.head));
  const std::size_t group = spec.multiple == 1 ? width : static_cast<std::size_t>(spec.multiple);
  const std::size_t rest = spec.tail == "masked" ? 0 : (terms.size() - first) % group;
  std::vector<std::vector<Terms>> cells(width, std::vector<Terms>(count));
  for (std::size_t i = 0; i + first + rest < terms.size(); ++i) {
    Terms& cell = cells[i % width][(i / width) % count];
    if (i == 0) cell.assign(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(first));
    cell.push_back(terms[first + i]);
  }
  Terms tail(terms.end() - static_cast<std::ptrdiff_t>(rest), terms.end());
  if (cells[0][0].empty()) return add_up(terms, spec.init);
  if (spec.tail == "first-lane") {
    cells[0][0].insert(cells[0][0].end(), tail.begin(), tail.end());
    tail.clear();
  }
  std::vector<Node> lanes;
  for (const std::vector<Terms>& lane : cells) {
    std::vector<Node> sums;
    for (const Terms& cell : lane) {
      if (!cell.empty()) sums.push_back(accumulated(accumulate(specs, depth, cell)));
    }
    if (!sums.empty()) lanes.push_back(join_nodes("sequential", sums));
  }
  Node sum = join_nodes(spec.join, lanes, width);
  if (!tail.empty() && spec.tail == "scalar-first") return plus(add_up(tail, spec.init), sum);
  for (const std::int64_t i : tail) sum = plus(sum, term(i));
  return sum;
}

/// The sums of consecutive parts, merged.
inline Node build_merged(const std::vector<Spec>& specs, std::size_t depth, const Terms& terms) {
  const Spec& spec = specs[depth];
  const auto number = static_cast<std::size_t>(spec.numbers[0]);
  const auto multiple = static_cast<std::size_t>(spec.multiple);
  std::size_t length = spec.word == "blocks" ? number : (terms.size() + number - 1) / number;
  while (length % multiple != 0) ++length;
  std::vector<Node> nodes;
  Terms group;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    group.push_back(terms[i]);
    if (group.size() == length || i + 1 == terms.size()) {
      nodes.push_back(rounded(accumulated(build(specs, depth + 1, group)), spec.partials));
      group.clear();
    }
  }
  if (spec.merge == "reverse") std::reverse(nodes.begin(), nodes.end());
  if (spec.merge == "reverse" || spec.merge == "sequential") {
    if (spec.init) nodes.front() = plus(zero(), nodes.front());
    nodes.front() = rounded(nodes.front(), spec.running);
    return join_nodes("sequential", nodes, 0, spec.running);
  }
  const std::size_t width = spec.word == "split" ? number : nodes.size();
  const Node sum = join_nodes(spec.merge, nodes, width, spec.running);
  return spec.init ? rounded(plus(zero(), sum), spec.running) : sum;
}

inline Node build(const std::vector<Spec>& specs, std::size_t depth, const Terms& terms) {
  if (terms.empty()) return zero();
  if (depth == specs.size()) return add_up(terms, false);
  const Spec& spec = specs[depth];
  if (spec.word == "sequential") return add_up(terms, spec.init);
  if (spec.word == "reverse") {
    return accumulate(specs, depth, Terms(terms.rbegin(), terms.rend()));
  }
  if (spec.word == "perm") {
    Terms moved;
    for (const std::int64_t k : spec.numbers)
      moved.push_back(terms.at(static_cast<std::size_t>(k)));
    return accumulate(specs, depth, moved);
  }
  if (spec.word == "lanes") return build_lanes(specs, depth, terms);
  std::vector<Node> nodes;
  if (spec.word == "exact") {
    if (spec.init) nodes.push_back(zero());
    for (const std::int64_t i : terms) nodes.push_back(term(i));
    return std::make_shared<Tree>(Tree{.kind = Tree::Kind::exact, .parts = nodes});
  }
  if (spec.word == "blocks" || spec.word == "split") return build_merged(specs, depth, terms);
  if (spec.word == "torch-cascade") {
    const bool paired = spec.numbers.size() > 1;
    return torch_sum(terms, static_cast<std::size_t>(spec.numbers[0]), paired);
  }
  if (spec.word == "torch-dot") return torch_dot(terms, static_cast<std::size_t>(spec.numbers[0]));
  for (const std::int64_t i : terms) nodes.push_back(term(i));  // pairwise, halving
  const Node sum = spec.word == "numpy-pairwise" ? numpy_sum(terms) : join_nodes(spec.word, nodes);
  return spec.init ? plus(zero(), sum) : sum;
}

/// The tree of an order over terms 0 … n − 1.
inline Node build(const std::vector<Spec>& specs, std::int64_t n) {
  Terms terms;
  for (std::int64_t i = 0; i < n; ++i) terms.push_back(i);
  return build(specs, 0, terms);
}

}  // namespace order_oracle
