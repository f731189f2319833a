// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/sum_tree.h"

namespace kvsim::gpu {

/// The additions of a sum as they can be seen from outside: which partial sums meet at which node.
/// Unlike a SumTree it does not say which operand stands left, what a node rounds, or whether a sum
/// starts from +0. Children stand before parents; those of a node in increasing order of their
/// smallest term. The last node is the sum.
class AdditionTree {
 public:
  struct Node {
    std::int64_t term = -1;                   ///< ≥ 0: a single term, without children
    std::vector<std::int32_t> children = {};  ///< two or more; more than two are summed at once
    /// The children are summed exactly and rounded once: a mask in them hides nothing.
    bool exact = false;
    std::int64_t smallest = 0;  ///< the smallest term below
    std::int64_t leaves = 1;    ///< terms below
  };

  /// Adds a term; the result is its node.
  std::int32_t add_term(std::int64_t term);
  /// Adds a sum of nodes; one child is that child itself.
  std::int32_t add_sum(std::vector<std::int32_t> children, bool exact = false);

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] const Node& root() const { return nodes_.back(); }
  [[nodiscard]] std::int64_t terms() const { return empty() ? 0 : root().leaves; }

  /// The tree below a node, with its terms renamed 0, 1, 2, … in increasing order.
  [[nodiscard]] AdditionTree below(std::int32_t node) const;
  /// The terms below a node, in increasing order.
  [[nodiscard]] std::vector<std::int64_t> terms_below(std::int32_t node) const;

  friend bool operator==(const AdditionTree& left, const AdditionTree& right);

 private:
  std::vector<Node> nodes_;
};

/// Canonical text: `3`; `(L+R)`, with more operands where they are summed at once; `exact(L,R)`.
/// Operands stand in increasing order of their smallest term.
[[nodiscard]] std::string to_string(const AdditionTree& tree);

/// SHA-256 of the canonical text, as 64 hexadecimal digits.
[[nodiscard]] std::string digest(const AdditionTree& tree);

/// A node of a tree that is still found out, in any order.
struct GrowingNode {
  std::int32_t term = -1;  ///< itself; with children, one that stands for what is below, or -1
  std::vector<std::int32_t> children = {};  ///< positions of nodes
  bool exact = false;                       ///< as in AdditionTree::Node
};

/// The tree below the node `root` of those that were grown.
[[nodiscard]] AdditionTree addition_tree(std::span<const GrowingNode> grown, std::int32_t root);

/// What can be seen of a SumTree from outside.
[[nodiscard]] AdditionTree addition_tree(const SumTree& tree);

/// A SumTree with the same additions, of nodes with two operands: in each, `fused[k]` says that
/// term k enters the addition unrounded (SumNodeKind::add_term); empty: wherever a partial sum
/// takes a term. Empty (no nodes) where a node has more than two operands and is not exact.
[[nodiscard]] SumTree sum_tree(const AdditionTree& tree, const std::vector<bool>& fused = {});

/// The tree as an SVG drawing: terms along the lower edge in the order in which they are added,
/// sums above. At most `max_terms` terms are drawn one by one; larger subtrees that repeat are
/// drawn as boxes with their number of terms.
[[nodiscard]] std::string to_svg(const AdditionTree& tree, std::int64_t max_terms = 256);

}  // namespace kvsim::gpu
