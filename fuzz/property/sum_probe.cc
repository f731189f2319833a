// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/sum_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;

/// The terms below every node.
std::vector<std::vector<bool>> terms_of_nodes(const SumTree& tree) {
  std::vector<std::vector<bool>> sets;
  sets.reserve(tree.nodes.size());
  for (const SumNode& node : tree.nodes) {
    std::vector<bool> own(static_cast<std::size_t>(tree.length));
    for (const std::int32_t child : {node.left, node.right}) {
      if (child < 0) continue;
      const std::vector<bool>& below = sets[static_cast<std::size_t>(child)];
      for (std::size_t k = 0; k < own.size(); ++k) own[k] = own[k] || below[k];
    }
    if (node.kind == SumNodeKind::term || node.kind == SumNodeKind::add_term) {
      own[static_cast<std::size_t>(node.first)] = true;
    }
    sets.push_back(own);
  }
  return sets;
}

}  // namespace

bool has_exact_sum(const Order& order) {
  return std::ranges::any_of(order.items,
                             [](const OrderItem& item) { return item.kind == OrderKind::exact; });
}

Violation probe_violation(const SumTree& tree, const Order& order, Product product) {
  const softfloat::Format& single = softfloat::binary32;
  const auto n = static_cast<std::size_t>(tree.length);
  const std::vector<std::vector<bool>> sets = terms_of_nodes(tree);
  const std::vector<Bits> ones(n, softfloat::from_float(1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      // Children stand before parents: the first node that has both is the smallest subtree.
      const auto meet = std::ranges::find_if(
          sets, [&](const std::vector<bool>& terms) { return terms[i] && terms[j]; });
      if (meet == sets.end()) return fmt::format("no node has both {} and {}", i, j);
      const auto inside = std::ranges::count(*meet, true);
      std::vector<Bits> terms = ones;
      terms[i] = softfloat::from_float(0x1p60F);
      terms[j] = softfloat::from_float(-0x1p60F);
      const Bits left = sum_products(order, product, single, single, terms, ones).bits;
      const auto expected = static_cast<double>(static_cast<std::int64_t>(n) - inside);
      if (softfloat::to_double(single, left) == expected) continue;
      return fmt::format(
          "{} over {} terms: {} of the terms are outside the subtree of {} and {}, "
          "{} in its tree",
          kvsim::to_string(order), n, softfloat::to_double(single, left), i, j, expected);
    }
  }
  return std::nullopt;
}

}  // namespace kvsim::fuzz
