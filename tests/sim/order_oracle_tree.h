// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Summation trees put together from nodes, and joins of lists of nodes; for order_oracle.h.
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

}  // namespace order_oracle
