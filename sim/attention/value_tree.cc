// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/value_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/splits.h"
#include "sim/attention/torch_cpu_rules.h"
#include "sim/attention/visible_keys.h"
#include "sim/linear.h"
#include "sim/order.h"

namespace kvsim::attention {
namespace {

using Node = std::int32_t;

/// A tree that grows from its leaves.
class Tree {
 public:
  Node zero() { return push({.kind = SumNodeKind::zero}); }
  Node term(std::int64_t key) { return push({.kind = SumNodeKind::term, .first = key}); }
  Node add_term(Node left, std::int64_t key) {
    return push({.kind = SumNodeKind::add_term, .left = left, .first = key});
  }
  Node add(Node left, Node right) {
    return push({.kind = SumNodeKind::add, .left = left, .right = right});
  }
  Node rounded(const softfloat::Format& format, Node left) {
    const auto found = std::ranges::find(tree_.formats, format);
    const auto at = found - tree_.formats.begin();
    if (found == tree_.formats.end()) tree_.formats.push_back(format);
    return push({.kind = SumNodeKind::rounded, .left = left, .first = at});
  }

  /// Σ of keys first, first + 1, … as `part` has it over 0, 1, …; with `start`, the chain of a
  /// matrix unit goes on from there.
  Node append(const SumTree& part, std::int64_t first, std::optional<Node> start = {}) {
    const auto nodes = static_cast<Node>(tree_.nodes.size());
    const auto terms = static_cast<std::int64_t>(tree_.terms.size());
    tree_.unit = part.unit;
    for (const std::int64_t term : part.terms) {
      tree_.terms.push_back(term == SumTree::zero_term ? term : first + term);
    }
    const auto moved = [&](Node node) {
      // The first node of a chain is the +0 that it starts from.
      if (node == 0 && start) return *start;
      return node < 0 ? node : node + nodes;
    };
    for (SumNode node : part.nodes) {
      node.left = moved(node.left);
      node.right = moved(node.right);
      const bool many = node.kind == SumNodeKind::exact || node.kind == SumNodeKind::unit_block;
      node.first += many ? terms : first;
      push(node);
    }
    return moved(static_cast<Node>(part.nodes.size()) - 1);
  }

  /// The tree of `root`, without what it does not hold.
  SumTree finish(Node root, std::int64_t length) {
    SumTree result;
    result.length = length;
    result.unit = tree_.unit;
    result.formats = tree_.formats;
    std::vector<char> used(tree_.nodes.size());
    used[index(root)] = 1;
    for (Node i = root; i >= 0; --i) {
      if (used[index(i)] == 0) continue;
      for (const Node child : {tree_.nodes[index(i)].left, tree_.nodes[index(i)].right}) {
        if (child >= 0) used[index(child)] = 1;
      }
    }
    std::vector<Node> number(tree_.nodes.size(), -1);
    for (Node i = 0; i <= root; ++i) {
      if (used[index(i)] == 0) continue;
      SumNode node = tree_.nodes[index(i)];
      if (node.left >= 0) node.left = number[index(node.left)];
      if (node.right >= 0) node.right = number[index(node.right)];
      if (node.kind == SumNodeKind::exact || node.kind == SumNodeKind::unit_block) {
        const auto from = tree_.terms.begin() + node.first;
        node.first = static_cast<std::int64_t>(result.terms.size());
        result.terms.insert(result.terms.end(), from, from + node.count);
      }
      number[index(i)] = static_cast<Node>(result.nodes.size());
      result.nodes.push_back(node);
    }
    return result;
  }

 private:
  Node push(const SumNode& node) {
    tree_.nodes.push_back(node);
    return static_cast<Node>(tree_.nodes.size() - 1);
  }

  SumTree tree_;
};

/// Joins nodes half as far apart each time; their number is a power of two.
Node butterfly(Tree& tree, std::vector<Node> nodes) {
  for (std::size_t half = nodes.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) nodes[i] = tree.add(nodes[i], nodes[i + half]);
  }
  return nodes[0];
}

/// What the trees of the families are made from.
struct Layer {
  const AttentionKernel& kernel;
  const AttentionProblem& problem;
  const StorageSums& sums;
  std::int64_t query;

  [[nodiscard]] KeyRange seen() const { return visible_keys(problem.shape, problem.mask, query); }
};

/// The order in which the named kernel of an eager rule sums P·V.
Result<Order> order_by_kernel(const Layer& layer, std::string_view name) {
  const LinearKernel* const kernel = find_linear_kernel(name);
  if (kernel == nullptr) {
    return Error{ErrorKind::usage, fmt::format("linear kernel {}: unknown", name)};
  }
  const AttentionShape& shape = layer.problem.shape;
  return linear_order(*kernel, {.rows = shape.query_len,
                                .outputs = shape.head_dim,
                                .terms = shape.kv_len,
                                .storage = layer.problem.storage});
}

Result<SumTree> sum_of_values(const Layer& layer, std::int64_t keys) {
  const EagerRule* const eager = layer.kernel.eager;
  const Result<Order> order = eager != nullptr && !eager->values_kernel.empty()
                                  ? order_by_kernel(layer, eager->values_kernel)
                                  : parse_order(layer.sums.values);
  if (!order) return order.error();
  return build_sum_tree(order.value(), keys);
}

Result<Node> online_tiles(const Layer& layer, Tree& tree) {
  const AttentionShape& shape = layer.problem.shape;
  const AttentionMask& mask = layer.problem.mask;
  const SplitPlan plan = plan_splits(layer.kernel, shape, mask, layer.problem.launch);
  const std::int64_t row = layer.query * shape.group();  // of the group's first head
  const std::int64_t tile = plan.tile_rows > 0 ? row / plan.tile_rows : 0;
  std::optional<Node> all;
  for (std::int64_t s = 0; s < plan.splits; ++s) {
    const KeyRange keys = split_keys(plan, shape, mask, tile, s);
    std::vector<KeyRange> blocks;
    for (std::int64_t begin = keys.begin; begin < keys.end; begin += plan.block_columns) {
      const KeyRange block{begin, std::min(begin + plan.block_columns, keys.end)};
      if (!intersect(block, layer.seen()).empty()) blocks.push_back(block);
    }
    if (layer.kernel.tiles->last_to_first) std::ranges::reverse(blocks);
    std::optional<Node> o;
    for (const KeyRange& block : blocks) {
      const Result<SumTree> part = sum_of_values(layer, block.size());
      if (!part) return part.error();
      o = tree.append(part.value(), block.begin, o);
    }
    if (!o) continue;
    all = all ? tree.add(*all, *o) : *o;
  }
  return all ? *all : tree.zero();
}

/// One thread's sum of eight tokens: docs/attention.md, "vLLM paged attention", step 3.
Node eight_tokens(const Layer& layer, std::int64_t first, std::int64_t end, Tree& tree) {
  const softfloat::Format& storage = layer.problem.storage;
  std::vector<Node> p;
  for (std::int64_t key = first; key < first + 8; ++key) {
    p.push_back(key < end ? tree.rounded(storage, tree.term(key)) : tree.zero());
  }
  if (storage == softfloat::binary16) {
    Node x = p[0];
    Node y = p[1];
    for (std::size_t t = 2; t < 8; t += 2) {
      x = tree.rounded(storage, tree.add(x, p[t]));
      y = tree.rounded(storage, tree.add(y, p[t + 1]));
    }
    return tree.add(x, y);
  }
  Node sum = tree.add(p[0], p[1]);
  for (std::size_t t = 2; t < 8; t += 2) sum = tree.add(sum, tree.add(p[t], p[t + 1]));
  return sum;
}

Node paged(const Layer& layer, Tree& tree) {
  constexpr std::size_t warps = 4;
  const std::int64_t page = layer.problem.launch.page_size;
  const auto threads = index(page / 8);
  const std::int64_t keys = layer.problem.shape.kv_len;
  const std::int64_t partition = keys_of_partition(layer.kernel, layer.problem);
  std::vector<Node> parts;
  for (std::int64_t first = 0; first < keys; first += partition) {
    const std::int64_t end = std::min(first + partition, keys);
    std::vector<Node> sums;
    sums.reserve(warps * threads);
    for (std::size_t i = 0; i < warps * threads; ++i) sums.push_back(tree.zero());
    for (std::int64_t begin = first; begin < end; begin += page) {
      const std::size_t warp = index((begin - first) / page) % warps;
      for (std::size_t t = 0; t < threads; ++t) {
        Node& sum = sums[warp * threads + t];
        const std::int64_t token = begin + 8 * static_cast<std::int64_t>(t);
        sum = tree.add(sum, eight_tokens(layer, token, end, tree));
      }
    }
    std::vector<Node> of_warps;
    for (auto from = sums.begin(); from != sums.end(); from += static_cast<long>(threads)) {
      of_warps.push_back(butterfly(tree, {from, from + static_cast<long>(threads)}));
    }
    parts.push_back(tree.rounded(layer.problem.storage, butterfly(tree, of_warps)));
  }
  if (parts.size() == 1) return parts[0];
  Node all = tree.zero();
  for (const Node part : parts) all = tree.add(all, part);
  return tree.rounded(layer.problem.storage, all);
}

/// Groups of four keys, key i with key i + 2; then the left-over keys, the last one first.
Node torch_in_fours(const KeyRange& block, Node o, Tree& tree) {
  const std::int64_t whole = block.begin + block.size() / 4 * 4;
  for (std::int64_t key = block.begin; key < whole; key += 4) {
    const Node even = tree.add(tree.term(key), tree.term(key + 2));
    const Node odd = tree.add(tree.term(key + 1), tree.term(key + 3));
    o = tree.add(o, tree.add(even, odd));
  }
  for (std::int64_t key = block.end - 1; key >= whole; --key) o = tree.add_term(o, key);
  return o;
}

Node torch(const Layer& layer, Tree& tree) {
  const AttentionShape& shape = layer.problem.shape;
  const std::int64_t queries = torch_cpu::queries_of_a_block(shape.query_len);
  const std::int64_t first_query = layer.query / queries * queries;
  const std::int64_t count = std::min(queries, shape.query_len - first_query);
  const KeyRange seen{visible_keys(shape, layer.problem.mask, first_query).begin,
                      visible_keys(shape, layer.problem.mask, first_query + count - 1).end};
  Node o = tree.zero();
  for (std::int64_t begin = 0; begin < shape.kv_len; begin += torch_cpu::keys_of_a_block) {
    const KeyRange block{begin, std::min(begin + torch_cpu::keys_of_a_block, shape.kv_len)};
    if (intersect(block, seen).empty()) continue;
    if (torch_cpu::in_fours(count, layer.problem.storage)) {
      o = torch_in_fours(block, o, tree);
      continue;
    }
    if (!torch_cpu::in_passes(count, shape.head_dim)) {
      for (std::int64_t key = block.begin; key < block.end; ++key) o = tree.add_term(o, key);
      continue;
    }
    const std::int64_t length = torch_cpu::pass_length(block.size());
    for (std::int64_t first = block.begin; first < block.end; first += length) {
      Node pass = tree.term(first);
      for (std::int64_t key = first + 1; key < std::min(first + length, block.end); ++key) {
        pass = tree.add_term(pass, key);
      }
      o = tree.add(o, pass);
    }
  }
  return o;
}

Node llama(const Layer& layer, Tree& tree) {
  const std::int64_t length = keys_of_chunk(layer.problem);
  std::optional<Node> all;
  for (std::int64_t first = 0; first < layer.problem.shape.kv_len; first += length) {
    const KeyRange keys = intersect(layer.seen(), {first, first + length});
    if (keys.empty()) continue;
    Node o = tree.zero();
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      o = tree.rounded(layer.problem.storage, tree.add_term(o, key));
    }
    all = all ? tree.add(*all, o) : o;
  }
  return all ? *all : tree.zero();
}

}  // namespace
}  // namespace kvsim::attention

namespace kvsim {

Result<SumTree> value_tree(const AttentionKernel& kernel, const AttentionProblem& problem,
                           std::int64_t query) {
  const Result<const StorageSums*> sums = attention::check_problem(kernel, problem);
  if (!sums) return sums.error();
  const AttentionShape& shape = problem.shape;
  if (query < 0 || query >= shape.query_len) {
    return Error{ErrorKind::usage,
                 fmt::format("query {}: accepted are 0 to {}", query, shape.query_len - 1)};
  }
  if (shape.kv_len > max_tree_terms) {
    return Error{ErrorKind::usage, fmt::format("a tree of {} keys: accepted are up to {}",
                                               shape.kv_len, max_tree_terms)};
  }
  const attention::Layer layer{kernel, problem, *sums.value(), query};
  attention::Tree tree;
  attention::Node root = 0;
  switch (kernel.family) {
    case AttentionFamily::eager:
      return attention::sum_of_values(layer, shape.kv_len);
    case AttentionFamily::online_tiles: {
      const Result<attention::Node> node = attention::online_tiles(layer, tree);
      if (!node) return node.error();
      root = node.value();
      break;
    }
    case AttentionFamily::paged:
      root = attention::paged(layer, tree);
      break;
    case AttentionFamily::torch_cpu:
      root = attention::torch(layer, tree);
      break;
    case AttentionFamily::llama_cpu:
      root = attention::llama(layer, tree);
      break;
  }
  return tree.finish(root, shape.kv_len);
}

}  // namespace kvsim
