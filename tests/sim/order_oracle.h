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

/// A term, +0, a rounded addition of two trees, an exact sum of terms, the partial sum of an
/// accumulator that has seen a single term (`left`), or `left` rounded to a format.
struct Tree {
  enum class Kind : std::uint8_t { term, zero, addition, exact, partial_sum, rounded };
  Kind kind = Kind::zero;
  std::int64_t term = 0;
  Node left = {};
  Node right = {};
  std::vector<Node> parts = {};
  std::string format = {};
};

inline Node zero() { return std::make_shared<Tree>(); }
inline Node term(std::int64_t i) {
  return std::make_shared<Tree>(Tree{.kind = Tree::Kind::term, .term = i});
}
inline Node plus(Node left, Node right) {
  return std::make_shared<Tree>(
      Tree{.kind = Tree::Kind::addition, .left = std::move(left), .right = std::move(right)});
}
/// The sum rounded to a format; as it is where `format` is empty.
inline Node rounded(Node sum, const std::string& format) {
  if (format.empty()) return sum;
  return std::make_shared<Tree>(
      Tree{.kind = Tree::Kind::rounded, .left = std::move(sum), .format = format});
}

/// What an accumulator holds once its terms are added up to `sum`.
inline Node accumulated(Node sum) {
  if (sum->kind != Tree::Kind::term) return sum;
  return std::make_shared<Tree>(Tree{.kind = Tree::Kind::partial_sum, .left = std::move(sum)});
}

inline std::string draw(const Node& node) {
  switch (node->kind) {
    case Tree::Kind::partial_sum:
      return draw(node->left);
    case Tree::Kind::term:
      return std::to_string(node->term);
    case Tree::Kind::zero:
      return "z";
    case Tree::Kind::rounded:
      return node->format + "(" + draw(node->left) + ")";
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
  if (node->kind == Tree::Kind::rounded) return height(node->left);
  if (node->kind != Tree::Kind::addition) return 0;
  if (node->left->kind == Tree::Kind::zero) return height(node->right);
  return 1 + std::max(height(node->left), height(node->right));
}

/// One item: its word, numbers and options as they stand in the text.
struct Spec {
  std::string word;
  std::vector<std::int64_t> numbers = {};
  std::string join = "pairwise";
  std::string tail = "masked";
  bool init = false;
  std::int64_t multiple = 1;
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

/// Joins nodes; a butterfly has room for `width` of them. Each sum is rounded to `format`.
inline Node join_nodes(const std::string& how, std::vector<Node> nodes, std::size_t width = 0,
                       const std::string& format = "") {
  const auto sum_of = [&format](const Node& left, const Node& right) {
    return rounded(plus(left, right), format);
  };
  if (how == "sequential") {
    Node sum = nodes.front();
    for (std::size_t i = 1; i < nodes.size(); ++i) sum = sum_of(sum, nodes[i]);
    return sum;
  }
  if (how == "pairwise") {
    if (nodes.size() == 1) return nodes.front();
    std::size_t half = 1;
    while (half * 2 < nodes.size()) half *= 2;
    const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(half);
    return sum_of(join_nodes(how, {nodes.begin(), middle}, 0, format),
                  join_nodes(how, {middle, nodes.end()}, 0, format));
  }
  if (how == "butterfly") {
    std::size_t distance = 1;
    while (distance < width) distance *= 2;
    nodes.resize(distance);  // absent ones are null
    for (distance /= 2; distance > 0; distance /= 2) {
      for (std::size_t i = 0; i < distance; ++i) {
        if (nodes[i + distance]) nodes[i] = sum_of(nodes[i], nodes[i + distance]);
      }
    }
    return nodes.front();
  }
  while (nodes.size() > 1) {  // halving
    const std::size_t half = (nodes.size() + 1) / 2;
    std::vector<Node> next;
    next.reserve(half);
    for (std::size_t i = 0; i < half; ++i) {
      next.push_back(i + half < nodes.size() ? sum_of(nodes[i], nodes[i + half]) : nodes[i]);
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
  Node sum = join_nodes(spec.join, lanes, width);
  if (rest > 0 && spec.tail == "scalar-first") return plus(add_up(tail, spec.init), sum);
  for (const std::int64_t i : tail) sum = plus(sum, term(i));
  return sum;
}

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

/// What ATen's multi_row_sum and row_sum do with the vectors' elements of one lane, statement by
/// statement.
inline Node torch_row_sum(const Terms& row) {
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
      for (std::size_t k = 0; k < ilp; ++k) accumulate_node(acc[0][k], term(row[i * ilp + k]));
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
    for (std::size_t k = 0; k < ilp; ++k) accumulate_node(acc[0][k], term(row[i * ilp + k]));
  }
  for (std::size_t j = 1; j < levels; ++j) {
    for (std::size_t k = 0; k < ilp; ++k) accumulate_node(acc[0][k], acc[j][k]);
  }
  for (std::size_t k = size * ilp; k < row.size(); ++k) accumulate_node(acc[0][0], term(row[k]));
  for (std::size_t k = 1; k < ilp; ++k) accumulate_node(acc[0][0], acc[0][k]);
  return acc[0][0];
}

/// What ATen's vectorized_inner_sum does with a list, W numbers to a vector.
inline Node torch_sum(const Terms& terms, std::size_t width) {
  if (terms.size() < width) width = 1;
  std::vector<Terms> rows(width);
  const std::size_t body = terms.size() / width * width;
  for (std::size_t i = 0; i < body; ++i) rows[i % width].push_back(terms[i]);
  Node total = zero();
  for (std::size_t i = body; i < terms.size(); ++i) accumulate_node(total, term(terms[i]));
  for (const Terms& row : rows) accumulate_node(total, torch_row_sum(row));
  return total;
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
    return torch_sum(terms, static_cast<std::size_t>(spec.numbers[0]));
  }
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
        spec.tail = std::vector<std::string>{"masked", "scalar", "scalar-first"}[random() % 3];
        break;
      case 8:
        spec.word = "numpy-pairwise";
        break;
      case 9:
        spec.word = "torch-cascade";
        spec.numbers = {1 + below(9)};
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
    const std::vector<std::string> last = {"sequential", "exact",          "pairwise",
                                           "halving",    "numpy-pairwise", "torch-cascade"};
    if (std::find(last.begin(), last.end(), spec.word) != last.end()) break;
  }
  return specs;
}

}  // namespace order_oracle
