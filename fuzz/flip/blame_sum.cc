// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fuzz/flip/blame.h"
#include "fuzz/flip/reference.h"
#include "sim/sum_tree.h"
#include "sim/sum_tree_nodes.h"
#include "sim/ulp.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

/// The way from the sum to every node: 0 for its left operand, 1 for its right one, runs of more
/// than three as "0*17".
std::vector<std::string> node_paths(const SumTree& tree) {
  struct Way {
    std::string before;  ///< all but the last run
    char digit = ' ';
    std::int64_t run = 0;
    [[nodiscard]] std::string text() const {
      if (run > 3) return fmt::format("{}/{}*{}", before, digit, run);
      std::string result = before;
      for (std::int64_t i = 0; i < run; ++i) result += fmt::format("/{}", digit);
      return result;
    }
    [[nodiscard]] Way to(char next) const {
      if (next == digit) return {before, digit, run + 1};
      return {text(), next, 1};
    }
  };
  std::vector<Way> ways(tree.nodes.size());
  ways.back().before = "root";
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const SumNode& node = tree.nodes[i];
    if (node.left >= 0) ways[static_cast<std::size_t>(node.left)] = ways[i].to('0');
    if (node.right >= 0) ways[static_cast<std::size_t>(node.right)] = ways[i].to('1');
  }
  std::vector<std::string> result;
  result.reserve(ways.size());
  for (const Way& way : ways) result.push_back(way.text());
  return result;
}

/// The terms that a node takes beside its children.
std::vector<std::int64_t> own_terms(const SumTree& tree, const SumNode& node) {
  std::vector<std::int64_t> terms;
  switch (node.kind) {
    case SumNodeKind::term:
    case SumNodeKind::add_term:
      terms.push_back(node.first);
      break;
    case SumNodeKind::exact:
    case SumNodeKind::unit_block:
      terms.assign(tree.terms.begin() + node.first, tree.terms.begin() + node.first + node.count);
      std::erase(terms, SumTree::zero_term);
      break;
    default:
      break;
  }
  return terms;
}

/// Terms below a node, as far as a line can say.
struct TermSet {
  std::int64_t first = 0;
  std::int64_t last = -1;
  std::int64_t count = 0;

  void add(const TermSet& other) {
    if (other.count == 0) return;
    first = count == 0 ? other.first : std::min(first, other.first);
    last = std::max(last, other.last);
    count += other.count;
  }
  [[nodiscard]] std::string text() const {
    if (count == 0) return "0";
    if (count == 1) return fmt::format("term {}", first);
    if (last - first + 1 == count) return fmt::format("terms {}..{}", first, last);
    return fmt::format("{} terms of {}..{}", count, first, last);
  }
};

TermSet set_of(const std::vector<std::int64_t>& terms) {
  TermSet set;
  for (const std::int64_t term : terms) set.add({term, term, 1});
  return set;
}

std::vector<TermSet> terms_below(const SumTree& tree) {
  std::vector<TermSet> below(tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const SumNode& node = tree.nodes[i];
    below[i] = set_of(own_terms(tree, node));
    if (node.left >= 0) below[i].add(below[static_cast<std::size_t>(node.left)]);
    if (node.right >= 0) below[i].add(below[static_cast<std::size_t>(node.right)]);
  }
  return below;
}

std::string step_text(const SumTree& tree, const SumNode& node, std::span<const TermSet> below) {
  const std::string own = set_of(own_terms(tree, node)).text();
  const auto child = [&](std::int32_t i) {
    return i < 0 ? std::string("0") : below[static_cast<std::size_t>(i)].text();
  };
  switch (node.kind) {
    case SumNodeKind::term:
      return "product of " + own;
    case SumNodeKind::add_term:
      return fmt::format("{} + {}", child(node.left), own);
    case SumNodeKind::add:
    case SumNodeKind::unit_add:
      return fmt::format("{} + {}", child(node.left), child(node.right));
    case SumNodeKind::exact:
      return "sum of " + own;
    case SumNodeKind::unit_block:
      return fmt::format("{} + block of {}", child(node.left), own);
    case SumNodeKind::rounded:
      return fmt::format(
          "{} rounded to {}", child(node.left),
          softfloat::format_name(tree.formats[static_cast<std::size_t>(node.first)]));
    case SumNodeKind::zero:
      break;
  }
  return "0";
}

class SumRoundings : public RoundingModel {
 public:
  [[nodiscard]] std::vector<Rounding> roundings() const override { return roundings_; }

  [[nodiscard]] DoubleDouble difference(const std::vector<char>& exact) const override {
    // Every node passes what it is given on as it is, so that errors add up.
    DoubleDouble sum = exact_;
    for (std::size_t i = 0; i < errors_.size(); ++i) {
      if (exact[i] == 0) sum = sum + errors_[i];
    }
    return sum;
  }

  /// The nodes of one token's tree.
  Result<bool> add_token(const FlipCase& flip_case, std::size_t path, std::int64_t token) {
    const CaseShape& shape = flip_case.shape;
    const auto tree = build_sum_tree(shape.orders[path], shape.terms);
    if (!tree) return tree.error();
    const std::span<const float> state(flip_case[CaseTensor::state]);
    const auto row = std::span(flip_case[CaseTensor::tokens])
                         .subspan(static_cast<std::size_t>(token) * state.size(), state.size());
    const auto values = evaluate_nodes(*tree, shape.product, shape.storage, shape.accumulator,
                                       codes(shape.storage, state), codes(shape.storage, row));
    if (!values) return values.error();
    const auto paths = node_paths(*tree);
    const auto below = terms_below(*tree);
    const double sign = token == 0 ? 1 : -1;
    exact_ = exact_ + exact_dot(state, row) * sign;
    for (std::size_t i = 0; i < tree->nodes.size(); ++i) {
      const SumNode& node = tree->nodes[i];
      DoubleDouble error = (*values)[i];
      for (const std::int32_t child : {node.left, node.right}) {
        if (child >= 0) error = error + -(*values)[static_cast<std::size_t>(child)];
      }
      for (const std::int64_t term : own_terms(*tree, node)) {
        const auto k = static_cast<std::size_t>(term);
        error = error + -(static_cast<double>(state[k]) * static_cast<double>(row[k]));
      }
      const softfloat::Format format = format_of_node(*tree, node, shape.accumulator);
      Rounding rounding;
      rounding.place = fmt::format("token {}, {}", token, paths[i]);
      rounding.step = step_text(*tree, node, below);
      rounding.error_ulp = std::ldexp(error.high, -ulp_exponent(format, (*values)[i]));
      rounding.group = token;
      rounding.number = static_cast<std::int64_t>(i);
      roundings_.push_back(std::move(rounding));
      errors_.push_back(error * sign);
    }
    return true;
  }

 private:
  std::vector<Rounding> roundings_;
  std::vector<DoubleDouble> errors_;  ///< in the difference of the logits
  DoubleDouble exact_;
};

}  // namespace

Result<std::unique_ptr<RoundingModel>> sum_roundings(const FlipCase& flip_case, std::size_t path) {
  auto model = std::make_unique<SumRoundings>();
  for (const std::int64_t token : {0, 1}) {
    const Result<bool> done = model->add_token(flip_case, path, token);
    if (!done) return done.error();
  }
  return std::unique_ptr<RoundingModel>(std::move(model));
}

}  // namespace kvsim::fuzz
