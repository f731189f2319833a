// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/tree_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "gpu/reveal/count_probe.h"
#include "gpu/reveal/pivot_ranking.h"
#include "sim/philox.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using Term = std::int32_t;

/// Terms whose place in the tree is not known yet: together they are what hangs below `node`
/// besides what is known: one subtree, or several where the node sums more than two operands.
struct OpenSet {
  std::vector<Term> members;
  std::int32_t node = -1;  ///< where they hang; −1: they are the whole sum
  Term witness = -1;       ///< a term below `node` that is not among them; −1 for the whole sum
  bool siblings = false;   ///< `node` is known to sum more than two operands
};

class TreeProbe {
 public:
  TreeProbe(Reduction& reduction, const SumClass& sums, std::uint64_t seed)
      : reduction_(reduction), probes_(reduction, sums), seed_(seed) {}

  Result<ProbedTree> run() {
    const std::int64_t calls_before = reduction_.calls();
    const std::int64_t n = reduction_.terms();
    OpenSet all;
    all.members.resize(index(n));
    std::iota(all.members.begin(), all.members.end(), 0);
    if (const auto counts = check_counting(all.members); !counts) return counts.error();
    put(std::move(all));
    while (!open_.empty()) {
      if (const auto done = round(); !done) return done.error();
    }
    return ProbedTree{addition_tree(grown_, root_), reduction_.calls() - calls_before,
                      probes_.sums()};
  }

 private:
  static constexpr std::size_t largest_paired = 64;

  std::uint64_t random(std::uint64_t below) { return philox_bits(seed_, 0, drawn_++) % below; }

  std::int32_t grow(Term term) {
    grown_.push_back({term, {}, false});
    return static_cast<std::int32_t>(grown_.size() - 1);
  }
  void attach(std::int32_t child, std::int32_t node) {
    if (node < 0) {
      root_ = child;
    } else {
      grown_[index(node)].children.push_back(child);
    }
  }
  /// A single term needs no probe.
  void put(OpenSet set) {
    if (set.members.size() == 1) {
      attach(grow(set.members.front()), set.node);
    } else if (!set.members.empty()) {
      open_.push_back(std::move(set));
    }
  }

  [[nodiscard]] Error inconsistent(const Contradiction& wrong) const {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: {} terms are lost before terms {} and {} meet, where the other "
                             "probes say {}: no one tree gives these sums",
                             reduction_.description(), wrong.lost, wrong.first, wrong.second,
                             wrong.expected)};
  }

  /// Ones alone must be counted as what they are.
  Result<bool> check_counting(const std::vector<Term>& members) {
    if (!probes_.mixes_pivots()) return true;
    std::vector<Term> some(members.begin(),
                           members.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                                 members.size(), index(probes_.limit()))));
    const auto size = static_cast<std::int64_t>(some.size());
    const auto counts =
        probes_.measure({{-1, -1, std::make_shared<std::vector<Term>>(std::move(some))}});
    if (!counts) return counts.error();
    if (counts->front() == size) return true;
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: the sum of {} ones is {}: no counting", reduction_.description(),
                             size, counts->front())};
  }

  /// One random term of every open set against the others of its set; of the operands of a node
  /// with many, all pairs at once, because most of them are single terms and one pivot would settle
  /// one of them.
  Result<bool> round() {
    const std::vector<OpenSet> sets = std::exchange(open_, {});
    std::vector<PivotRanking> rankings;
    std::vector<const OpenSet*> ranked;
    std::vector<const OpenSet*> paired;
    for (const OpenSet& set : sets) {
      if (set.siblings && probes_.mixes_pivots() && set.members.size() <= largest_paired &&
          static_cast<std::int64_t>(set.members.size()) < probes_.limit()) {
        paired.push_back(&set);
        continue;
      }
      std::vector<Term> others = set.members;
      std::swap(others.back(), others[random(others.size())]);
      const Term pivot = others.back();
      others.pop_back();
      rankings.emplace_back(pivot, std::move(others), set.witness, probes_.limit() - 1,
                            [this](std::uint64_t below) { return random(below); });
      ranked.push_back(&set);
    }
    std::vector<CountProbe> probes;
    for (const OpenSet* set : paired) ask_pairs(*set, probes);
    std::size_t of_pairs = probes.size();
    std::vector<std::int64_t> pair_counts;
    for (;;) {
      std::vector<std::size_t> ends;
      for (PivotRanking& ranking : rankings) {
        ranking.ask(probes);
        ends.push_back(probes.size());
      }
      if (probes.empty()) break;
      const auto counts = probes_.measure(probes);
      if (!counts) return counts.error();
      std::span<const std::int64_t> all = *counts;
      if (pair_counts.empty())
        pair_counts.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(of_pairs));
      std::size_t begin = of_pairs;
      of_pairs = 0;
      for (std::size_t i = 0; i < rankings.size(); ++i) {
        const auto wrong = rankings[i].answer(all.subspan(begin, ends[i] - begin));
        if (wrong) return inconsistent(*wrong);
        begin = ends[i];
      }
      probes.clear();
    }
    for (std::size_t i = 0; i < rankings.size(); ++i) settle(*ranked[i], rankings[i]);
    std::span<const std::int64_t> left = pair_counts;
    for (const OpenSet* set : paired) {
      const std::size_t size = set->members.size() * (set->members.size() - 1) / 2;
      settle_pairs(*set, left.first(size));
      left = left.subspan(size);
    }
    return true;
  }

  /// Grows the path from the pivot to the set's node; the groups beside it become open sets.
  void settle(const OpenSet& set, const PivotRanking& ranking) {
    if (ranking.exact()) {
      const std::int32_t node = grow(-1);
      grown_[index(node)].exact = true;
      for (const Term member : set.members) attach(grow(member), node);
      attach(node, set.node);
      return;
    }
    std::int32_t path = grow(ranking.pivot());
    for (PivotRanking::Group& group : ranking.groups()) {
      if (group.at_parent) {
        put({std::move(group.members), set.node, set.witness, true});
        break;
      }
      const std::int32_t node = grow(-1);
      attach(path, node);
      put({std::move(group.members), node, ranking.pivot(), false});
      path = node;
    }
    attach(path, set.node);
  }

  static void ask_pairs(const OpenSet& set, std::vector<CountProbe>& probes) {
    auto counted = std::make_shared<std::vector<Term>>(set.members);
    counted->push_back(set.witness);
    for (std::size_t i = 0; i < set.members.size(); ++i) {
      for (std::size_t j = i + 1; j < set.members.size(); ++j) {
        probes.push_back({set.members[i], set.members[j], counted});
      }
    }
  }

  /// Where all pairs were measured, the whole subtree is known.
  void settle_pairs(const OpenSet& set, std::span<const std::int64_t> counts) {
    std::map<std::pair<Term, Term>, std::int64_t> survivors;
    std::size_t next = 0;
    for (std::size_t i = 0; i < set.members.size(); ++i) {
      for (std::size_t j = i + 1; j < set.members.size(); ++j) {
        survivors[{set.members[i], set.members[j]}] = counts[next];
        survivors[{set.members[j], set.members[i]}] = counts[next++];
      }
    }
    struct Local {
      std::vector<Term> members;
      std::int32_t node;
      std::int64_t survivors;  // of pairs that meet at `node`
    };
    std::vector<Local> later = {{set.members, set.node, 0}};
    while (!later.empty()) {
      const Local local = std::move(later.back());
      later.pop_back();
      const Term pivot = local.members.front();
      std::map<std::int64_t, std::vector<Term>, std::greater<>> groups;
      for (const Term other : local.members) {
        if (other != pivot) groups[survivors[{pivot, other}]].push_back(other);
      }
      std::int32_t path = grow(pivot);
      for (auto& [count, members] : groups) {
        if (count == local.survivors) {
          later.push_back({std::move(members), local.node, local.survivors});
          break;
        }
        const std::int32_t node = grow(-1);
        attach(path, node);
        later.push_back({std::move(members), node, count});
        path = node;
      }
      attach(path, local.node);
    }
  }

  Reduction& reduction_;
  CountProbes probes_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::vector<GrowingNode> grown_;
  std::int32_t root_ = -1;
  std::vector<OpenSet> open_;  // for the next round
};

}  // namespace

Result<ProbedTree> probe_tree(Reduction& reduction, const SumClass& sums, std::uint64_t seed) {
  return TreeProbe(reduction, sums, seed).run();
}

}  // namespace kvsim::gpu
