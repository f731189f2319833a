// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/philox.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using Term = std::int32_t;

/// A subtree that is known or has a place to grow: a term that stands for it, and its node.
struct Item {
  Term term = -1;
  std::int32_t node = -1;
};

/// Items of which only is known that together they are all that hangs in one place.
struct OpenSet {
  std::vector<Item> items;
  std::int32_t node = -1;  ///< where they hang; −1: they are the whole sum
};

class AbsorptionTree {
 public:
  AbsorptionTree(const AbsorptionAnswers& ask, const std::string& what, std::uint64_t seed)
      : ask_(ask), what_(what), seed_(seed) {}

  Result<ProbedTree> run(std::int64_t terms) {
    OpenSet all;
    all.items.reserve(index(terms));
    for (Term term = 0; term < terms; ++term) all.items.push_back({term, grow(term)});
    if (terms > 2) {
      const auto exact = is_exact(all.items);
      if (!exact) return exact.error();
      if (*exact) return ProbedTree{exact_sum(terms), 0, probes_};
    }
    put(std::move(all));
    while (!open_.empty()) {
      if (const auto done = round(); !done) return done.error();
    }
    if (const auto done = check(); !done) return done.error();
    return ProbedTree{addition_tree(grown_, root_), 0, probes_};
  }

 private:
  /// Two items of a set and what is known of the others.
  struct Pair {
    OpenSet set;  ///< without the two
    Item a;
    Item b;
    std::vector<Item> inside = {};  ///< meet one of the two before the other does
    std::vector<Item> outside = {};
  };

  std::uint64_t random(std::uint64_t below) { return philox_bits(seed_, 0, drawn_++) % below; }

  Result<std::vector<bool>> ask(const std::vector<AbsorptionProbe>& probes) {
    probes_ += static_cast<std::int64_t>(probes.size());
    if (probes.empty()) return std::vector<bool>{};
    return ask_(probes);
  }

  std::int32_t grow(Term term) {
    grown_.push_back({term, {}});
    return static_cast<std::int32_t>(grown_.size() - 1);
  }
  void attach(std::int32_t child, std::int32_t node) {
    if (node < 0) {
      root_ = child;
    } else {
      grown_[index(node)].children.push_back(child);
    }
  }
  /// One item hangs there itself, of two the sum.
  void put(OpenSet set) {
    if (set.items.size() > 2) {
      open_.push_back(std::move(set));
      return;
    }
    std::int32_t node = set.items.front().node;
    if (set.items.size() == 2) {
      node = grow(set.items.front().term);
      attach(set.items.front().node, node);
      attach(set.items.back().node, node);
    }
    attach(node, set.node);
  }

  [[nodiscard]] Error no_tree(const AbsorptionProbe& probe) const {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: terms {}, {} and {} meet in no order that a tree of additions of "
                             "two operands has",
                             what_, probe.first, probe.second, probe.large)};
  }

  /// Whether any two terms count together, whichever is the large one: nothing is rounded between.
  Result<bool> is_exact(const std::vector<Item>& items) {
    const std::size_t last = items.size() - 1;
    const Term a = items.front().term;
    const Term b = items[1 + random(last - 1)].term;
    const Term c = items[last].term;
    const auto met = ask({{a, b, c}, {b, c, a}, {c, a, b}});
    if (!met) return met.error();
    const auto count = std::count(met->begin(), met->end(), true);
    if (count == 1 || count == 3) return count == 3;
    return no_tree({a, b, c});
  }
  static AdditionTree exact_sum(std::int64_t terms) {
    AdditionTree tree;
    std::vector<std::int32_t> children;
    children.reserve(index(terms));
    for (std::int64_t term = 0; term < terms; ++term) children.push_back(tree.add_term(term));
    tree.add_sum(std::move(children), true);
    return tree;
  }

  Item take(std::vector<Item>& items) {
    std::swap(items.back(), items[random(items.size())]);
    const Item taken = items.back();
    items.pop_back();
    return taken;
  }

  Result<bool> round() {
    std::vector<Pair> pairs;
    std::vector<AbsorptionProbe> probes;
    pairs.reserve(open_.size());
    for (OpenSet& set : std::exchange(open_, {})) {
      const Item a = take(set.items);
      const Item b = take(set.items);
      for (const Item& other : set.items) probes.push_back({a.term, b.term, other.term});
      pairs.push_back({std::move(set), a, b});
    }
    const auto outside = ask(probes);
    if (!outside) return outside.error();
    std::size_t next = 0;
    probes.clear();
    for (Pair& pair : pairs) {
      for (const Item& other : pair.set.items) {
        if ((*outside)[next++]) {
          pair.outside.push_back(other);
        } else {
          pair.inside.push_back(other);
          probes.push_back({pair.a.term, other.term, pair.b.term});
        }
      }
    }
    const auto with_a = ask(probes);
    if (!with_a) return with_a.error();
    next = 0;
    for (Pair& pair : pairs) {
      const std::int32_t node = grow(pair.a.term);
      OpenSet of_a{{pair.a}, node};
      OpenSet of_b{{pair.b}, node};
      for (const Item& other : pair.inside) {
        ((*with_a)[next++] ? of_a : of_b).items.push_back(other);
      }
      put(std::move(of_a));
      put(std::move(of_b));
      pair.outside.push_back({pair.a.term, node});
      put({std::move(pair.outside), pair.set.node});
    }
    return true;
  }

  /// Of every node but the last: its operands meet before either meets what the node is added to.
  Result<bool> check() {
    std::vector<AbsorptionProbe> probes;
    for (const GrowingNode& node : grown_) {
      if (node.children.size() != 2) continue;
      for (std::size_t i = 0; i < 2; ++i) {
        const GrowingNode& below = grown_[index(node.children[i])];
        if (below.children.size() != 2) continue;
        probes.push_back({grown_[index(below.children[0])].term,
                          grown_[index(below.children[1])].term,
                          grown_[index(node.children[1 - i])].term});
      }
    }
    const auto met = ask(probes);
    if (!met) return met.error();
    const auto wrong = std::find(met->begin(), met->end(), false);
    if (wrong == met->end()) return true;
    return no_tree(probes[index(wrong - met->begin())]);
  }

  const AbsorptionAnswers& ask_;
  const std::string& what_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::int64_t probes_ = 0;
  std::vector<GrowingNode> grown_;
  std::int32_t root_ = -1;
  std::vector<OpenSet> open_;  // for the next round
};

}  // namespace

Result<ProbedTree> absorption_tree(std::int64_t terms, const AbsorptionAnswers& ask,
                                   const std::string& what, std::uint64_t seed) {
  return AbsorptionTree(ask, what, seed).run(terms);
}

}  // namespace kvsim::gpu
