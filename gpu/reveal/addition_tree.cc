// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/addition_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "softfloat/index.h"
#include "softfloat/sha256.h"

namespace kvsim::gpu {
namespace {

/// Writes a tree with a list of what is still to be written in place of recursion: a sequential sum
/// is as deep as it is long.
class TextWriter {
 public:
  explicit TextWriter(const AdditionTree& tree) : tree_(tree) {}

  std::string write() {
    if (tree_.empty()) return {};
    later_.push_back({static_cast<std::int32_t>(tree_.nodes().size() - 1), {}});
    while (!later_.empty()) {
      const Piece piece = later_.back();
      later_.pop_back();
      if (piece.node < 0) {
        text_ += piece.text;
      } else {
        write_node(tree_.nodes()[index(piece.node)]);
      }
    }
    return std::move(text_);
  }

 private:
  struct Piece {
    std::int32_t node = -1;  // or, if negative, text
    std::string_view text;
  };

  void write_node(const AdditionTree::Node& node) {
    if (node.term >= 0) {
      text_ += fmt::to_string(node.term);
      return;
    }
    text_ += node.exact ? "exact(" : "(";
    later_.push_back({-1, ")"});
    for (std::size_t i = node.children.size(); i-- > 0;) {
      later_.push_back({node.children[i], {}});
      if (i > 0) later_.push_back({-1, node.exact ? "," : "+"});
    }
  }

  const AdditionTree& tree_;
  std::vector<Piece> later_;
  std::string text_;
};

/// Reads the nodes of a SumTree from the first to the last; -1 stands for +0.
class Reader {
 public:
  explicit Reader(const SumTree& tree) : tree_(tree) {}

  AdditionTree read() {
    for (const SumNode& node : tree_.nodes) read_.push_back(read_node(node));
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::int32_t at(std::int32_t node) const { return read_[index(node)]; }

  std::int32_t sum_of(std::vector<std::int32_t> parts, bool exact = false) {
    std::erase(parts, -1);
    return parts.empty() ? -1 : result_.add_sum(std::move(parts), exact);
  }

  std::int32_t read_node(const SumNode& node) {
    switch (node.kind) {
      case SumNodeKind::zero:
        break;
      case SumNodeKind::term:
        return result_.add_term(node.first);
      case SumNodeKind::add_term:
        return sum_of({at(node.left), result_.add_term(node.first)});
      case SumNodeKind::add:
      case SumNodeKind::unit_add:
        return sum_of({at(node.left), at(node.right)});
      case SumNodeKind::rounded:
        return at(node.left);
      case SumNodeKind::exact:
      case SumNodeKind::unit_block: {
        std::vector<std::int32_t> parts;
        if (node.left >= 0) parts.push_back(at(node.left));
        for (std::int64_t k = node.first; k < node.first + node.count; ++k) {
          const std::int64_t term = tree_.terms[index(k)];
          if (term != SumTree::zero_term) parts.push_back(result_.add_term(term));
        }
        return sum_of(std::move(parts), node.kind == SumNodeKind::exact);
      }
    }
    return -1;
  }

  const SumTree& tree_;
  AdditionTree result_;
  std::vector<std::int32_t> read_;
};

}  // namespace

std::int32_t AdditionTree::add_term(std::int64_t term) {
  Node node;
  node.term = term;
  node.smallest = term;
  nodes_.push_back(std::move(node));
  return static_cast<std::int32_t>(nodes_.size() - 1);
}

std::int32_t AdditionTree::add_sum(std::vector<std::int32_t> children, bool exact) {
  if (children.size() == 1) return children.front();
  std::sort(children.begin(), children.end(), [this](std::int32_t a, std::int32_t b) {
    return nodes_[index(a)].smallest < nodes_[index(b)].smallest;
  });
  Node node;
  node.leaves = 0;
  for (const std::int32_t child : children) node.leaves += nodes_[index(child)].leaves;
  node.smallest = nodes_[index(children.front())].smallest;
  node.exact = exact && children.size() > 2;
  node.children = std::move(children);
  nodes_.push_back(std::move(node));
  return static_cast<std::int32_t>(nodes_.size() - 1);
}

std::vector<std::int64_t> AdditionTree::terms_below(std::int32_t node) const {
  std::vector<std::int64_t> terms;
  std::vector<std::int32_t> later = {node};
  while (!later.empty()) {
    const Node& next = nodes_[index(later.back())];
    later.pop_back();
    if (next.term >= 0) terms.push_back(next.term);
    later.insert(later.end(), next.children.begin(), next.children.end());
  }
  std::sort(terms.begin(), terms.end());
  return terms;
}

AdditionTree AdditionTree::below(std::int32_t node) const {
  const std::vector<std::int64_t> terms = terms_below(node);
  // Children stand before parents: one pass over the nodes up to this one finds those below it.
  std::vector<bool> wanted(index(node) + 1, false);
  wanted[index(node)] = true;
  for (std::int32_t i = node; i >= 0; --i) {
    if (!wanted[index(i)]) continue;
    for (const std::int32_t child : nodes_[index(i)].children) wanted[index(child)] = true;
  }
  AdditionTree tree;
  std::vector<std::int32_t> renamed(index(node) + 1, -1);
  for (std::int32_t i = 0; i <= node; ++i) {
    if (!wanted[index(i)]) continue;
    const Node& old = nodes_[index(i)];
    if (old.term >= 0) {
      const auto at = std::lower_bound(terms.begin(), terms.end(), old.term) - terms.begin();
      renamed[index(i)] = tree.add_term(at);
      continue;
    }
    std::vector<std::int32_t> children;
    children.reserve(old.children.size());
    for (const std::int32_t child : old.children) children.push_back(renamed[index(child)]);
    renamed[index(i)] = tree.add_sum(std::move(children), old.exact);
  }
  return tree;
}

bool operator==(const AdditionTree& left, const AdditionTree& right) {
  return left.nodes_.size() == right.nodes_.size() && left.terms() == right.terms() &&
         to_string(left) == to_string(right);
}

std::string to_string(const AdditionTree& tree) { return TextWriter(tree).write(); }

std::string digest(const AdditionTree& tree) {
  const std::string text = to_string(tree);
  return sha256(std::as_bytes(std::span<const char>(text)));
}

AdditionTree addition_tree(std::span<const GrowingNode> grown, std::int32_t root) {
  AdditionTree tree;
  std::vector<std::int32_t> order;  // parents before children
  std::vector<std::int32_t> later = {root};
  while (!later.empty()) {
    order.push_back(later.back());
    later.pop_back();
    const GrowingNode& node = grown[index(order.back())];
    later.insert(later.end(), node.children.begin(), node.children.end());
  }
  std::vector<std::int32_t> made(grown.size(), -1);
  for (std::size_t i = order.size(); i-- > 0;) {
    const GrowingNode& node = grown[index(order[i])];
    if (node.children.empty()) {
      made[index(order[i])] = tree.add_term(node.term);
      continue;
    }
    std::vector<std::int32_t> children;
    children.reserve(node.children.size());
    for (const std::int32_t child : node.children) children.push_back(made[index(child)]);
    made[index(order[i])] = tree.add_sum(std::move(children), node.exact);
  }
  return tree;
}

AdditionTree addition_tree(const SumTree& tree) { return Reader(tree).read(); }

SumTree sum_tree(const AdditionTree& tree, const std::vector<bool>& fused) {
  SumTree result;
  result.length = tree.terms();
  std::vector<std::int32_t> made;
  const auto push = [&](const SumNode& node) {
    result.nodes.push_back(node);
    return static_cast<std::int32_t>(result.nodes.size() - 1);
  };
  const auto enters_unrounded = [&](const AdditionTree::Node& node) {
    return node.term >= 0 && (fused.empty() || fused[index(node.term)]);
  };
  for (const AdditionTree::Node& node : tree.nodes()) {
    if (node.term >= 0) {
      made.push_back(push({.kind = SumNodeKind::term, .first = node.term}));
      continue;
    }
    if (node.exact) {
      const auto begin = static_cast<std::int64_t>(result.terms.size());
      for (const std::int32_t child : node.children) {
        const std::int64_t term = tree.nodes()[index(child)].term;
        if (term < 0) return {};
        result.terms.push_back(term);
      }
      made.push_back(push({.kind = SumNodeKind::exact,
                           .count = static_cast<std::int32_t>(node.children.size()),
                           .first = begin}));
      continue;
    }
    if (node.children.size() != 2) return {};
    std::int32_t left = node.children[0];
    std::int32_t right = node.children[1];
    // The operand that enters unrounded is the one that an accumulator takes.
    if (!enters_unrounded(tree.nodes()[index(right)]) &&
        enters_unrounded(tree.nodes()[index(left)])) {
      std::swap(left, right);
    }
    const AdditionTree::Node& operand = tree.nodes()[index(right)];
    if (enters_unrounded(operand)) {
      made.push_back(
          push({.kind = SumNodeKind::add_term, .left = made[index(left)], .first = operand.term}));
    } else {
      made.push_back(
          push({.kind = SumNodeKind::add, .left = made[index(left)], .right = made[index(right)]}));
    }
  }
  return result;
}

}  // namespace kvsim::gpu
