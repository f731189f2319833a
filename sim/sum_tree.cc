// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sum_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "sim/order_walk.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

/// Ops of walk() that writes the calls down as nodes. Past max_tree_nodes nothing is written any
/// more, and the tree is of no use.
class Builder {
 public:
  using Value = std::int32_t;  ///< a node

  Builder(const Order& order, std::int64_t n) {
    tree_.length = n;
    const std::optional<MatrixUnit> unit = unit_of(order);
    if (!unit) return;
    unit_ = *unit;
    tree_.unit = kvsim::to_string(unit_);
  }

  Value zero() { return push({.kind = SumNodeKind::zero}); }
  Value first(std::int64_t i) { return push({.kind = SumNodeKind::term, .first = i}); }
  Value add_term(Value left, std::int64_t i) {
    return push({.kind = SumNodeKind::add_term, .left = left, .first = i});
  }
  Value add(Value left, Value right) {
    return push({.kind = SumNodeKind::add, .left = left, .right = right});
  }

  Value exact(const OrderRange& range, bool from_zero) {
    const std::size_t begin = tree_.terms.size();
    if (from_zero) tree_.terms.push_back(SumTree::zero_term);
    for (std::int64_t k = 0; k < range.count; ++k) tree_.terms.push_back(range.at(k));
    return push_with_terms({.kind = SumNodeKind::exact}, begin);
  }

  Value round_to(Value left, const softfloat::Format& format) {
    const auto found = std::find(tree_.formats.begin(), tree_.formats.end(), format);
    const auto index = found - tree_.formats.begin();
    if (found == tree_.formats.end()) tree_.formats.push_back(format);
    return push({.kind = SumNodeKind::rounded, .left = left, .first = index});
  }

  /// A chain of instructions from +0: the description of MatrixUnit, read as a tree.
  Value unit(const OrderRange& range, const OrderItem&) {
    Value total = zero();
    if (tree_.unit.empty()) return total;  // parse_order() accepts no such order
    const bool adds_last = unit_.addend == Addend::last;
    const std::int64_t length = std::int64_t{unit_.fan_in} * unit_.blocks;
    for (std::int64_t k = 0; k < range.count; k += length) {
      const OrderRange terms = range.part(k, std::min(length, range.count - k));
      const Value start = adds_last ? zero() : total;
      const Value sum =
          unit_.operation == UnitOperation::fma ? fma_chain(start, terms) : blocks(start, terms);
      total = adds_last ? unit_add(total, sum) : sum;
    }
    return total;
  }

  std::optional<SumTree> finish() {
    if (full_) return std::nullopt;
    return std::move(tree_);
  }

 private:
  Value push(const SumNode& node) {
    if (tree_.nodes.size() >= max_tree_nodes) {
      full_ = true;
      return 0;
    }
    tree_.nodes.push_back(node);
    return static_cast<Value>(tree_.nodes.size() - 1);
  }
  Value push_with_terms(SumNode node, std::size_t begin) {
    node.first = static_cast<std::int64_t>(begin);
    node.count = static_cast<std::int32_t>(tree_.terms.size() - begin);
    return push(node);
  }
  Value unit_add(Value left, Value right) {
    return push({.kind = SumNodeKind::unit_add, .left = left, .right = right});
  }

  /// Number i of block j, or zero_term beyond the end of an instruction's terms.
  [[nodiscard]] std::int64_t element(const OrderRange& terms, std::int64_t j,
                                     std::int64_t i) const {
    std::int64_t k = j * unit_.fan_in + i;
    if (unit_.order == OperandOrder::odd_before_even) k ^= 1;
    if (unit_.order == OperandOrder::pairs_of_four) k = 4 * (i / 2) + 2 * j + i % 2;
    return k < terms.count ? terms.at(k) : SumTree::zero_term;
  }

  Value block(Value addend, const OrderRange& terms, std::int64_t j) {
    const std::size_t begin = tree_.terms.size();
    for (std::int64_t i = 0; i < unit_.fan_in; ++i) tree_.terms.push_back(element(terms, j, i));
    // A block is filled up with zeros anyway.
    while (tree_.terms.size() > begin + 1 && tree_.terms.back() == SumTree::zero_term) {
      tree_.terms.pop_back();
    }
    return push_with_terms({.kind = SumNodeKind::unit_block, .left = addend}, begin);
  }

  Value blocks(Value sum, const OrderRange& terms) {
    const std::int64_t used = unit_.order == OperandOrder::pairs_of_four
                                  ? unit_.blocks
                                  : (terms.count - 1) / unit_.fan_in + 1;
    for (std::int64_t j = 0; j < used; ++j) sum = block(sum, terms, j);
    return sum;
  }

  Value fma_chain(Value start, const OrderRange& terms) {
    std::vector<Value> sums = {start};
    while (static_cast<int>(sums.size()) < unit_.accumulators) sums.push_back(zero());
    const std::int64_t used = ((terms.count - 1) / unit_.fan_in + 1) * unit_.fan_in;
    for (std::int64_t k = 0; k < used; ++k) {
      const std::size_t begin = tree_.terms.size();
      tree_.terms.push_back(element(terms, k / unit_.fan_in, k % unit_.fan_in));
      Value& sum = sums[static_cast<std::size_t>(k) % sums.size()];
      sum = push_with_terms({.kind = SumNodeKind::unit_block, .left = sum}, begin);
    }
    for (std::size_t i = 1; i < sums.size(); ++i) sums[0] = unit_add(sums[0], sums[i]);
    return sums[0];
  }

  MatrixUnit unit_;
  SumTree tree_;
  bool full_ = false;
};

std::string term_text(std::int64_t term) {
  return term == SumTree::zero_term ? "zero" : fmt::to_string(term);
}

/// The terms of an exact or unit_block node, with commas.
std::string terms_text(const SumTree& tree, const SumNode& node) {
  std::string text;
  for (std::int64_t i = node.first; i < node.first + node.count; ++i) {
    if (i > node.first) text += ',';
    text += term_text(tree.terms[static_cast<std::size_t>(i)]);
  }
  return text;
}

std::string format_text(const SumTree& tree, const SumNode& node) {
  return std::string(softfloat::format_name(tree.formats[static_cast<std::size_t>(node.first)]));
}

/// Writes a tree from left to right, with a list of what is still to be written instead of
/// recursion: a sequential sum is as deep as it is long.
class TextWriter {
 public:
  explicit TextWriter(const SumTree& tree) : tree_(tree) {}

  std::string write() {
    if (tree_.nodes.empty()) return {};
    later_.push_back({static_cast<std::int32_t>(tree_.nodes.size() - 1), {}});
    while (!later_.empty()) {
      const Piece piece = std::move(later_.back());
      later_.pop_back();
      if (piece.node < 0) {
        text_ += piece.text;
      } else {
        write_node(tree_.nodes[static_cast<std::size_t>(piece.node)]);
      }
    }
    return std::move(text_);
  }

 private:
  struct Piece {
    std::int32_t node = -1;  // or, if negative, text
    std::string text;
  };

  void then(std::string text) { later_.push_back({-1, std::move(text)}); }
  void then(std::int32_t node) { later_.push_back({node, {}}); }
  [[nodiscard]] bool is_term(std::int32_t node) const {
    return tree_.nodes[static_cast<std::size_t>(node)].kind == SumNodeKind::term;
  }

  /// What comes later is put down last piece first.
  void write_node(const SumNode& node) {
    switch (node.kind) {
      case SumNodeKind::zero:
        text_ += "zero";
        return;
      case SumNodeKind::term:
        text_ += term_text(node.first);
        return;
      case SumNodeKind::add_term:
        text_ += '(';
        then(fmt::format("+{})", node.first));
        then(node.left);
        return;
      case SumNodeKind::add: {
        text_ += '(';
        const bool single = is_term(node.right);
        then(single ? "])" : ")");
        then(node.right);
        then(single ? "+[" : "+");
        then(node.left);
        return;
      }
      case SumNodeKind::exact:
        text_ += fmt::format("exact({})", terms_text(tree_, node));
        return;
      case SumNodeKind::unit_block:
        text_ += tree_.unit + '{';
        then(fmt::format(";{}}}", terms_text(tree_, node)));
        then(node.left);
        return;
      case SumNodeKind::unit_add:
        text_ += tree_.unit + '{';
        then("}");
        then(node.right);
        then("+");
        then(node.left);
        return;
      case SumNodeKind::rounded:
        text_ += format_text(tree_, node) + '(';
        then(")");
        then(node.left);
        return;
    }
  }

  const SumTree& tree_;
  std::vector<Piece> later_;
  std::string text_;
};

}  // namespace

Result<SumTree> build_sum_tree(const Order& order, std::int64_t n) {
  if (const Result<bool> fits = check_length(order, n); !fits) return fits.error();
  if (n > max_tree_terms) {
    return Error{ErrorKind::usage,
                 fmt::format("tree of {} terms; accepted: at most {}", n, max_tree_terms)};
  }
  Builder builder(order, n);
  walk(order, n, builder);
  std::optional<SumTree> tree = builder.finish();
  if (tree) return std::move(*tree);
  return Error{ErrorKind::usage, fmt::format("tree of order {} over {} terms: more than {} nodes",
                                             to_string(order), n, max_tree_nodes)};
}

std::string to_string(const SumTree& tree) { return TextWriter(tree).write(); }

std::string digest(const SumTree& tree) {
  const std::string text = to_string(tree);
  return sha256(std::as_bytes(std::span<const char>(text)));
}

std::string to_graphviz(const SumTree& tree) {
  std::string text = "digraph sum {\n  node [shape=circle];\n";
  std::size_t leaves = 0;
  const auto leaf = [&](std::size_t parent, std::int64_t term) {
    text += fmt::format("  t{} [shape=plaintext, label=\"{}\"];\n  n{} -> t{};\n", leaves,
                        term_text(term), parent, leaves);
    ++leaves;
  };
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const SumNode& node = tree.nodes[i];
    const auto describe = [&](std::string_view label, std::string_view shape) {
      text += fmt::format("  n{} [shape={}, label=\"{}\"];\n", i, shape, label);
    };
    switch (node.kind) {
      case SumNodeKind::zero:
      case SumNodeKind::term:
        describe(node.kind == SumNodeKind::zero ? "zero" : term_text(node.first), "plaintext");
        break;
      case SumNodeKind::add_term:
      case SumNodeKind::add:
        describe("+", "circle");
        break;
      case SumNodeKind::exact:
        describe("exact", "box");
        break;
      case SumNodeKind::unit_block:
      case SumNodeKind::unit_add:
        describe(tree.unit + (node.kind == SumNodeKind::unit_add ? " +" : ""), "box");
        break;
      case SumNodeKind::rounded:
        describe(format_text(tree, node), "diamond");
        break;
    }
    for (const std::int32_t child : {node.left, node.right}) {
      if (child >= 0) text += fmt::format("  n{} -> n{};\n", i, child);
    }
    if (node.kind == SumNodeKind::add_term) leaf(i, node.first);
    for (std::int64_t k = 0; k < node.count; ++k) {
      leaf(i, tree.terms[static_cast<std::size_t>(node.first + k)]);
    }
  }
  return text + "}\n";
}

}  // namespace kvsim
