// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/result.h"
#include "softfloat/rounding.h"

namespace kvsim {

/// What one node of a SumTree does with its children.
enum class SumNodeKind : std::uint8_t {
  zero,        ///< +0
  term,        ///< a term that starts a partial sum
  add_term,    ///< `left` + a term, in one accumulator: under fused products one multiply-add
  add,         ///< `left` + `right`, two partial sums, rounded to the accumulator
  exact,       ///< the exact sum of terms, rounded once to the accumulator
  unit_block,  ///< what the matrix unit makes of one block: its addend `left`, then terms
  unit_add,    ///< `left` + `right` inside the matrix unit: the addend that it adds last, or the
               ///< accumulators that it joins
  rounded,     ///< `left` rounded to another format
};

/// One node: its kind and its children, as indices into SumTree::nodes.
struct SumNode {
  SumNodeKind kind = SumNodeKind::zero;
  std::int32_t left = -1;
  std::int32_t right = -1;
  std::int32_t count = 0;  ///< exact, unit_block: how many terms
  /// term, add_term: the term. exact, unit_block: where its terms begin in SumTree::terms.
  /// rounded: the format's index in SumTree::formats.
  std::int64_t first = 0;

  friend bool operator==(const SumNode&, const SumNode&) = default;
};

/// The tree of additions of a sum of n terms: what an Order means, node by node. Two orders are the
/// same for this n exactly where their trees have the same text.
struct SumTree {
  /// In SumTree::terms: +0 in the place of a term. Blocks of a matrix unit are filled up with it,
  /// and an exact sum under init=zero has it first.
  static constexpr std::int64_t zero_term = -1;

  std::int64_t length = 0;                 ///< n
  std::vector<SumNode> nodes;              ///< children before parents; the last one is the sum
  std::vector<std::int64_t> terms;         ///< of the nodes with many terms
  std::vector<softfloat::Format> formats;  ///< of `rounded` nodes, each once
  std::string unit;                        ///< canonical text of the matrix unit; may be empty

  friend bool operator==(const SumTree&, const SumTree&) = default;
};

inline constexpr std::int64_t max_tree_terms = std::int64_t{1} << 20;  ///< n, at most
inline constexpr std::size_t max_tree_nodes = std::size_t{1} << 22;    ///< 24 bytes each

/// The tree of `order` over n terms. An error where check_length(order, n) has one, where n is
/// larger than max_tree_terms or the tree has more than max_tree_nodes nodes.
Result<SumTree> build_sum_tree(const Order& order, std::int64_t n);

/// Canonical text, by node kind: `zero`; `3`; `(L+3)`; `(L+R)`, with a single term on the right in
/// brackets, `(L+[3])`; `exact(0,1,2)`; `UNIT{L;0,1,2,3}`; `UNIT{L+R}`; `bfloat16(L)`. In lists of
/// terms `zero` stands for SumTree::zero_term.
std::string to_string(const SumTree& tree);

/// SHA-256 of the canonical text, as 64 hexadecimal digits.
std::string digest(const SumTree& tree);

/// The tree as a digraph in the DOT language of Graphviz, edges from sums to what they add.
std::string to_graphviz(const SumTree& tree);

/// The sum that the tree describes, node by node on softfloat: the bits and flags of sum_products()
/// for the order that the tree was built from. An error where a or b has not tree.length codes, or
/// where check_formats() would have one.
Result<softfloat::Rounded> evaluate_tree(const SumTree& tree, Product product,
                                         const softfloat::Format& input,
                                         const softfloat::Format& accumulator,
                                         std::span<const softfloat::Bits> a,
                                         std::span<const softfloat::Bits> b,
                                         const softfloat::Mode& mode = {});

}  // namespace kvsim
