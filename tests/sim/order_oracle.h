// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

/// Summation trees built the slow way: every item of an order, read from its definition, makes
/// lists of terms and puts tree nodes together. Shares no code with sim/; orders are described by
/// Spec, not by kvsim::Order, and reach the code under test as text only.
namespace order_oracle {

struct Tree;
using Node = std::shared_ptr<const Tree>;

/// A term, +0, a rounded addition of two trees, an exact sum of terms, or the partial sum of an
/// accumulator that has seen a single term (`left`).
struct Tree {
  enum class Kind : std::uint8_t { term, zero, addition, exact, partial_sum };
  Kind kind = Kind::zero;
  std::int64_t term = 0;
  Node left;
  Node right;
  std::vector<Node> parts;
};

inline Node zero() { return std::make_shared<Tree>(); }
inline Node term(std::int64_t i) {
  return std::make_shared<Tree>(Tree{Tree::Kind::term, i, {}, {}, {}});
}
inline Node plus(Node left, Node right) {
  return std::make_shared<Tree>(
      Tree{Tree::Kind::addition, 0, std::move(left), std::move(right), {}});
}

/// What an accumulator holds once its terms are added up to `sum`.
inline Node accumulated(Node sum) {
  if (sum->kind != Tree::Kind::term) return sum;
  return std::make_shared<Tree>(Tree{Tree::Kind::partial_sum, 0, std::move(sum), {}, {}});
}

inline std::string draw(const Node& node) {
  switch (node->kind) {
    case Tree::Kind::partial_sum:
      return draw(node->left);
    case Tree::Kind::term:
      return std::to_string(node->term);
    case Tree::Kind::zero:
      return "z";
    case Tree::Kind::addition:
      return "(" + draw(node->left) + "+" + draw(node->right) + ")";
    case Tree::Kind::exact:
      break;
  }
  std::string text;
  for (const Node& part : node->parts) text += (text.empty() ? "" : ",") + draw(part);
  return "exact(" + text + ")";
}

/// Longest path in rounded additions; adding to +0 does not count.
inline std::int64_t height(const Node& node) {
  if (node->kind == Tree::Kind::exact) {
    std::int64_t terms = 0;
    for (const Node& part : node->parts) terms += part->kind == Tree::Kind::term ? 1 : 0;
    return terms > 1 ? 1 : 0;
  }
  if (node->kind != Tree::Kind::addition) return 0;
  if (node->left->kind == Tree::Kind::zero) return height(node->right);
  return 1 + std::max(height(node->left), height(node->right));
}

/// One item: its word, numbers and options as they stand in the text.
struct Spec {
  std::string word;
  std::vector<std::int64_t> numbers;
  std::string join = "pairwise";
  std::string tail = "masked";
  bool init = false;
};

inline std::string text(const Spec& spec) {
  std::vector<std::string> arguments;
  arguments.reserve(spec.numbers.size() + 3);
  for (const std::int64_t number : spec.numbers) arguments.push_back(std::to_string(number));
  if (spec.join != "pairwise") arguments.push_back("join=" + spec.join);
  if (spec.tail != "masked") arguments.push_back("tail=" + spec.tail);
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

inline Node join_nodes(const std::string& how, std::vector<Node> nodes) {
  if (how == "sequential") {
    Node sum = nodes.front();
    for (std::size_t i = 1; i < nodes.size(); ++i) sum = plus(sum, nodes[i]);
    return sum;
  }
  if (how == "pairwise") {
    if (nodes.size() == 1) return nodes.front();
    std::size_t half = 1;
    while (half * 2 < nodes.size()) half *= 2;
    const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(half);
    return plus(join_nodes(how, {nodes.begin(), middle}), join_nodes(how, {middle, nodes.end()}));
  }
  while (nodes.size() > 1) {  // halving
    const std::size_t half = (nodes.size() + 1) / 2;
    std::vector<Node> next;
    next.reserve(half);
    for (std::size_t i = 0; i < half; ++i) {
      next.push_back(i + half < nodes.size() ? plus(nodes[i], nodes[i + half]) : nodes[i]);
    }
    nodes = std::move(next);
  }
  return nodes.front();
}

using Terms = std::vector<std::int64_t>;

inline Node add_up(const Terms& terms, bool init) {
  std::vector<Node> nodes;
  if (init) nodes.push_back(zero());
  for (const std::int64_t i : terms) nodes.push_back(term(i));
  return join_nodes("sequential", nodes);
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
  const std::size_t rest = spec.tail == "masked" ? 0 : terms.size() % width;
  std::vector<std::vector<Terms>> cells(width, std::vector<Terms>(count));
  for (std::size_t i = 0; i < terms.size() - rest; ++i) {
    cells[i % width][(i / width) % count].push_back(terms[i]);
  }
  std::vector<Node> lanes;
  for (const std::vector<Terms>& lane : cells) {
    std::vector<Node> sums;
    for (const Terms& cell : lane) {
      if (!cell.empty()) sums.push_back(accumulated(accumulate(specs, depth, cell)));
    }
    if (!sums.empty()) lanes.push_back(join_nodes("sequential", sums));
  }
  const Terms tail(terms.end() - static_cast<std::ptrdiff_t>(rest), terms.end());
  if (lanes.empty()) return add_up(tail, spec.init);
  Node sum = join_nodes(spec.join, lanes);
  if (rest > 0 && spec.tail == "scalar-first") return plus(add_up(tail, spec.init), sum);
  for (const std::int64_t i : tail) sum = plus(sum, term(i));
  return sum;
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
    return std::make_shared<Tree>(Tree{Tree::Kind::exact, 0, {}, {}, nodes});
  }
  if (spec.word == "blocks" || spec.word == "split") {
    const auto number = static_cast<std::size_t>(spec.numbers[0]);
    const std::size_t length =
        spec.word == "blocks" ? number : (terms.size() + number - 1) / number;
    if (spec.init) nodes.push_back(zero());
    Terms group;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      group.push_back(terms[i]);
      if (group.size() == length || i + 1 == terms.size()) {
        nodes.push_back(accumulated(build(specs, depth + 1, group)));
        group.clear();
      }
    }
    return join_nodes("sequential", nodes);
  }
  for (const std::int64_t i : terms) nodes.push_back(term(i));  // pairwise, halving
  const Node sum = join_nodes(spec.word, nodes);
  return spec.init ? plus(zero(), sum) : sum;
}

/// The tree of an order over terms 0 … n − 1.
inline Node build(const std::vector<Spec>& specs, std::int64_t n) {
  Terms terms;
  for (std::int64_t i = 0; i < n; ++i) terms.push_back(i);
  return build(specs, 0, terms);
}

/// Lengths of the ranges that meet the item after `specs`, found by summing with a probe there.
inline bool all_groups_have(const Node& node, std::size_t length) {
  switch (node->kind) {
    case Tree::Kind::exact:
      return node->parts.size() == length;
    case Tree::Kind::addition:
      return all_groups_have(node->left, length) && all_groups_have(node->right, length);
    case Tree::Kind::term:
    case Tree::Kind::partial_sum:
      return false;  // a scalar tail: no group at all
    case Tree::Kind::zero:
      break;
  }
  return true;
}

/// A random order over n terms, up to four items deep; a perm appears only where its length fits.
inline std::vector<Spec> random_order(std::mt19937_64& random, std::int64_t n) {
  const auto below = [&random](std::uint64_t limit) {
    return static_cast<std::int64_t>(random() % limit);
  };
  std::vector<Spec> specs;
  const std::int64_t depth = 1 + below(4);
  while (static_cast<std::int64_t>(specs.size()) < depth) {
    Spec spec;
    spec.init = below(4) == 0;
    switch (below(9)) {
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
        spec.join = std::vector<std::string>{"pairwise", "halving", "sequential"}[random() % 3];
        spec.tail = std::vector<std::string>{"masked", "scalar", "scalar-first"}[random() % 3];
        break;
      default:
        spec.word = below(2) == 0 ? "blocks" : "split";
        spec.numbers = {1 + below(12)};
        break;
    }
    if (spec.word == "perm") {
      std::vector<Spec> probe = specs;
      probe.push_back({"exact", {}, "pairwise", "masked", false});
      const Node tree = build(probe, n);
      std::int64_t length = n;
      for (Node node = tree; node->kind != Tree::Kind::term;) {
        if (node->kind == Tree::Kind::exact) length = static_cast<std::int64_t>(node->parts.size());
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
    if (spec.word == "sequential" || spec.word == "exact" || spec.word == "pairwise" ||
        spec.word == "halving") {
      break;
    }
  }
  return specs;
}

}  // namespace order_oracle
