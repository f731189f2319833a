// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/arithmetic_probe.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "gpu/reveal/fused_node_unit.h"
#include "gpu/reveal/probe_calls.h"
#include "sim/philox.h"
#include "softfloat/format.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using Term = std::int32_t;
using Sparse = ProbeCalls::Sparse;
using Node = AdditionTree::Node;

float power_of_two(int exponent) { return std::ldexp(1.0F, exponent); }

/// Three terms: the first two meet at a node, the third one later.
struct Place {
  Term first = -1;
  Term second = -1;
  Term later = -1;
};

class ArithmeticProbe {
 public:
  ArithmeticProbe(Reduction& reduction, const SumClass& sums, const AdditionTree& tree)
      : reduction_(reduction),
        tree_(tree),
        calls_(reduction, sums),
        ones_(index(reduction.terms()), 1.0F),
        parents_(tree.nodes().size(), -1) {
    for (std::size_t i = 0; i < tree.nodes().size(); ++i) {
      for (const std::int32_t child : tree.nodes()[i].children) {
        parents_[index(child)] = static_cast<std::int32_t>(i);
      }
    }
    // 2^0 would leave binary16 no room below.
    scale_ = reduction.input().exponent_bits >= 8 ? 0 : 10;
  }

  Result<ArithmeticFindings> run() {
    const std::int64_t before = reduction_.calls();
    for (const Node& node : tree_.nodes()) {
      if (node.children.size() < 3 || node.exact) continue;
      std::int64_t terms = 0;
      for (const std::int32_t child : node.children) terms += tree_.nodes()[index(child)].term >= 0;
      found_.fan_in = std::max(found_.fan_in, terms);
    }
    if (reduction_.input().precision > 4 && !reduction_.is_mean()) {
      for (const auto step :
           {&ArithmeticProbe::sums, &ArithmeticProbe::fused_nodes, &ArithmeticProbe::zero_exponent,
            &ArithmeticProbe::products, &ArithmeticProbe::output, &ArithmeticProbe::subnormals}) {
        if (const auto done = (this->*step)(); !done) return done.error();
      }
    } else if (found_.fan_in > 0) {
      found_.why_no_zero_exponent = "formats of so few bits are not asked";
    }
    found_.calls = reduction_.calls() - before;
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Node& node(std::int32_t i) const { return tree_.nodes()[index(i)]; }
  [[nodiscard]] Term term_of(std::int32_t i) const { return static_cast<Term>(node(i).smallest); }

  /// A term below the parent of a node that is not below the node.
  [[nodiscard]] Term beside(std::int32_t i) const {
    const std::int32_t parent = parents_[index(i)];
    if (parent < 0) return -1;
    for (const std::int32_t child : node(parent).children) {
      if (child != i) return term_of(child);
    }
    return -1;
  }

  [[nodiscard]] std::vector<Place> places() const {
    std::vector<Place> all;
    for (std::size_t i = 0; i < tree_.nodes().size(); ++i) {
      const Node& sum = tree_.nodes()[i];
      if (sum.children.empty() || sum.exact) continue;
      const Term later = beside(static_cast<std::int32_t>(i));
      if (later >= 0) all.push_back({term_of(sum.children[0]), term_of(sum.children[1]), later});
    }
    // Few at a time where a call answers few.
    const std::size_t most = std::max<std::size_t>(16, index(calls_.capacity()));
    if (all.size() <= most) return all;
    std::vector<Place> some;
    some.reserve(most);
    for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
    return some;
  }

  [[nodiscard]] Sparse sum_of(const Place& place, float small, float sign = 1) const {
    const float one = sign * power_of_two(scale_);
    return {{place.first, one}, {place.second, std::ldexp(small, scale_)}, {place.later, -one}};
  }

  /// Precision and direction of the rounding at each place.
  Result<bool> sums() {
    std::vector<Place> open = places();
    const int lowest = reduction_.input().emin() - reduction_.input().precision + 1;
    const int deepest = std::min(60, scale_ - lowest);
    while (!open.empty()) {
      // The last bit that 1 keeps beside it, at one place of those that are not explained yet.
      std::vector<Sparse> questions;
      for (int t = 1; t <= deepest; ++t)
        questions.push_back(sum_of(open.front(), power_of_two(-t)));
      const auto kept = calls_.run(ones_, questions);
      if (!kept) return kept.error();
      int precision = 0;
      while (precision < deepest &&
             (*kept)[index(precision)] == power_of_two(scale_ - precision - 1)) {
        ++precision;
      }
      NodeRounding seen{precision + 1, RoundingSeen::unknown, 0};
      if (precision == deepest) seen.precision = 0;
      auto answers = directions(open, precision);
      if (!answers) return answers.error();
      seen.rounding = answers->front();
      std::vector<Place> rest;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (i == 0 || (*answers)[i] == seen.rounding) {
          ++seen.nodes;
        } else {
          rest.push_back(open[i]);
        }
      }
      const auto place = std::upper_bound(
          found_.sums.begin(), found_.sums.end(), seen,
          [](const auto& a, const auto& b) { return a.nodes > b.nodes; });  // most nodes first
      found_.sums.insert(place, seen);
      open = std::move(rest);
      if (found_.sums.size() == 8) break;
    }
    return true;
  }

  /// The direction in which a sum with `bits` bits below 1 is rounded; `other` where it has not
  /// that many, or more.
  Result<std::vector<RoundingSeen>> directions(const std::vector<Place>& places, int bits) {
    const float last = power_of_two(-bits);
    std::vector<Sparse> questions;
    for (const Place& place : places) {
      questions.push_back(sum_of(place, last));
      questions.push_back(sum_of(place, last * 0.5F));
      questions.push_back(sum_of(place, last * 0.75F));
      questions.push_back(sum_of(place, last * -0.75F, -1));
    }
    const auto sums = calls_.run(ones_, questions);
    if (!sums) return sums.error();
    std::vector<RoundingSeen> seen;
    seen.reserve(places.size());
    const float unit = std::ldexp(last, scale_);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const float* const sum = sums->data() + 4 * i;
      RoundingSeen direction = RoundingSeen::other;
      if (sum[0] == unit && sum[1] == 0 && sum[2] == 0 && sum[3] == 0) {
        direction = RoundingSeen::toward_zero;
      } else if (sum[0] == unit && sum[2] == unit && sum[3] == -unit) {
        if (sum[1] == 0) direction = RoundingSeen::nearest_even;
        if (sum[1] == unit) direction = RoundingSeen::nearest_away;
      }
      seen.push_back(direction);
    }
    return seen;
  }

  /// How far below its largest term a node of many operands still sees one.
  Result<bool> fused_nodes() {
    for (const Node& sum : tree_.nodes()) {
      if (sum.children.size() < 3 || sum.exact) continue;
      std::vector<Term> terms;
      for (const std::int32_t child : sum.children) {
        if (node(child).term >= 0) terms.push_back(term_of(child));
      }
      if (terms.size() < 3) continue;
      const float one = power_of_two(scale_);
      const int lowest = reduction_.input().emin() - reduction_.input().precision + 1;
      const int deepest = std::min(60, scale_ - lowest);
      std::vector<Sparse> questions;
      for (int t = 1; t <= deepest; ++t) {
        questions.push_back(
            {{terms[0], one}, {terms[1], -one}, {terms[2], power_of_two(scale_ - t)}});
      }
      for (int t = 1; t <= deepest; ++t) {
        questions.push_back(
            {{terms[0], one}, {terms[1], -one}, {terms[2], -power_of_two(scale_ - t)}});
      }
      const auto sums = calls_.run(ones_, questions);
      if (!sums) return sums.error();
      int bits = 0;
      while (bits < deepest && (*sums)[index(bits)] != 0) ++bits;
      if (bits < deepest) found_.fraction_bits = bits;
      found_.truncates_down = bits < deepest && (*sums)[index(deepest + bits)] < 0;
      return true;
    }
    return true;
  }

  Result<bool> zero_exponent() { return add_zero_exponent(calls_, reduction_, tree_, found_); }

  /// Whether products are rounded before they are added: a product is met by its rounded negative.
  Result<bool> products() {
    const int sum_bits = found_.sums.empty() ? 24 : found_.sums.front().precision;
    // Sums in binary64 show products that are rounded to binary32 first.
    const int half = sum_bits == 53 ? 12 : (sum_bits + 1) / 2;
    if (!reduction_.has_left() || sum_bits == 0 || half >= reduction_.input().precision) {
      return true;
    }
    const std::size_t n = index(reduction_.terms());
    found_.products.assign(n, ProductSeen::untested);
    const float factor = 1 + power_of_two(-half);
    const float rounded = -(1 + power_of_two(1 - half));
    // One output at a time makes for short calls: all terms can be asked about.
    const std::size_t most =
        calls_.capacity() == 1 ? 1024 : std::max<std::size_t>(64, index(calls_.capacity()));
    for (std::uint64_t coloring = 0; coloring < 24; ++coloring) {
      const auto tested = [&](std::int64_t k) {
        const bool bit = (philox_bits(coloring / 2, 7, static_cast<std::uint64_t>(k)) & 1) != 0;
        return bit == (coloring % 2 == 0);
      };
      std::vector<float> shared(n, 1.0F);
      for (std::size_t k = 0; k < n; ++k) {
        if (tested(static_cast<std::int64_t>(k))) shared[k] = factor;
      }
      std::vector<Sparse> questions;
      std::vector<Term> asked;
      for (std::size_t i = 0; i < tree_.nodes().size() && asked.size() < most; ++i) {
        const Node& term = tree_.nodes()[i];
        if (term.term < 0 || parents_[i] < 0 || !tested(term.term)) continue;
        if (found_.products[index(term.term)] != ProductSeen::untested) continue;
        const Node& sum = node(parents_[i]);
        if (sum.children.size() != 2) continue;
        const std::int32_t other =
            sum.children[0] == static_cast<std::int32_t>(i) ? sum.children[1] : sum.children[0];
        const Term partner = untested_below(other, tested);
        if (partner < 0) continue;
        questions.push_back({{static_cast<Term>(term.term), factor}, {partner, rounded}});
        asked.push_back(static_cast<Term>(term.term));
      }
      if (questions.empty()) continue;
      const auto sums = calls_.run(shared, questions);
      if (!sums) return sums.error();
      for (std::size_t i = 0; i < asked.size(); ++i) {
        found_.products[index(asked[i])] =
            (*sums)[i] == 0 ? ProductSeen::rounded : ProductSeen::fused;
      }
    }
    summarize_products();
    return true;
  }

  template <class Tested>
  [[nodiscard]] Term untested_below(std::int32_t start, const Tested& tested) const {
    // Down the tree, a few steps to either side are enough.
    std::vector<std::int32_t> later = {start};
    for (int step = 0; step < 64 && !later.empty(); ++step) {
      const Node& next = node(later.back());
      later.pop_back();
      if (next.term >= 0 && !tested(next.term)) return static_cast<Term>(next.term);
      later.insert(later.end(), next.children.rbegin(), next.children.rend());
    }
    return -1;
  }

  /// A term that a sum starts with is rounded under fused products too: it counts only where its
  /// neighbour is not a single term.
  void summarize_products() {
    std::int64_t fused = 0;
    std::int64_t rounded = 0;
    for (std::size_t i = 0; i < tree_.nodes().size(); ++i) {
      const Node& sum = tree_.nodes()[i];
      if (sum.children.size() != 2) continue;
      const Node& a = node(sum.children[0]);
      const Node& b = node(sum.children[1]);
      const auto seen = [&](const Node& term) {
        return term.term < 0 ? ProductSeen::untested : found_.products[index(term.term)];
      };
      if (a.term >= 0 && b.term >= 0) {
        if (seen(a) == ProductSeen::fused || seen(b) == ProductSeen::fused) {
          ++fused;
        } else if (seen(a) == ProductSeen::rounded && seen(b) == ProductSeen::rounded) {
          ++rounded;
        }
      } else {
        for (const Node* term : {&a, &b}) {
          fused += seen(*term) == ProductSeen::fused ? 1 : 0;
          rounded += seen(*term) == ProductSeen::rounded ? 1 : 0;
        }
      }
    }
    if (fused + rounded == 0) return;
    found_.product = rounded == 0 ? "fused" : fused == 0 ? "rounded" : "mixed";
  }

  /// The last rounding, from the sum to the output.
  Result<bool> output() {
    const int bits = reduction_.output().precision - 1;
    const int sum_bits = found_.sums.empty() ? 24 : found_.sums.front().precision;
    if (bits + 1 >= sum_bits || tree_.terms() < 2) return true;
    const Node& root = tree_.root();
    const Place place{term_of(root.children[0]), term_of(root.children[1]), -1};
    const float one = power_of_two(scale_);
    std::vector<Sparse> questions;
    for (const float part : {0.5F, 0.75F, 1.5F}) {
      questions.push_back({{place.first, one}, {place.second, one * part * power_of_two(-bits)}});
    }
    const auto sums = calls_.run(ones_, questions);
    if (!sums) return sums.error();
    const float unit = one * power_of_two(-bits);
    const std::vector<float> up = {(*sums)[0] - one, (*sums)[1] - one, (*sums)[2] - one};
    if (up == std::vector<float>{0, unit, 2 * unit}) {
      found_.output = RoundingSeen::nearest_even;
    } else if (up == std::vector<float>{unit, unit, 2 * unit}) {
      found_.output = RoundingSeen::nearest_away;
    } else if (up == std::vector<float>{0, 0, unit}) {
      found_.output = RoundingSeen::toward_zero;
    } else {
      found_.output = RoundingSeen::other;
    }
    return true;
  }

  Result<bool> subnormals() {
    if (tree_.terms() < 2) return true;
    const softfloat::Format& input = reduction_.input();
    const float smallest = power_of_two(input.emin() - input.precision + 1);
    const float normal = power_of_two(input.emin());
    std::vector<float> shared = ones_;
    // A subnormal factor whose product is normal, where the other factor can lift it.
    const float lift = reduction_.has_left() ? power_of_two(std::min(30, input.emax())) : 1.0F;
    shared[0] = lift;
    auto sums = calls_.run(shared, std::vector<Sparse>{{{0, smallest}}});
    if (!sums) return sums.error();
    found_.subnormal_factors = sums->front() != 0 ? SubnormalsSeen::kept : SubnormalsSeen::flushed;
    if (input.exponent_bits < 8) return true;
    // 1.5 · 2^emin − 2^emin is subnormal in binary32 and bfloat16 alike.
    const Node& root = tree_.root();
    sums = calls_.run(ones_, std::vector<Sparse>{{{term_of(root.children[0]), 1.5F * normal},
                                                  {term_of(root.children[1]), -normal}}});
    if (!sums) return sums.error();
    found_.subnormal_sums = sums->front() != 0 ? SubnormalsSeen::kept : SubnormalsSeen::flushed;
    return true;
  }

  Reduction& reduction_;
  const AdditionTree& tree_;
  ProbeCalls calls_;
  std::vector<float> ones_;
  std::vector<std::int32_t> parents_;
  int scale_ = 0;
  ArithmeticFindings found_;
};

}  // namespace

std::string_view to_string(RoundingSeen rounding) {
  switch (rounding) {
    case RoundingSeen::nearest_even:
      return "to nearest, ties to even";
    case RoundingSeen::nearest_away:
      return "to nearest, ties away";
    case RoundingSeen::toward_zero:
      return "toward zero";
    case RoundingSeen::other:
      return "otherwise";
    case RoundingSeen::unknown:
      break;
  }
  return "not seen";
}

std::string_view to_string(SubnormalsSeen seen) {
  switch (seen) {
    case SubnormalsSeen::kept:
      return "kept";
    case SubnormalsSeen::flushed:
      return "flushed to zero";
    case SubnormalsSeen::unknown:
      break;
  }
  return "not seen";
}

Result<ArithmeticFindings> probe_arithmetic(Reduction& reduction, const SumClass& sums,
                                            const AdditionTree& tree) {
  return ArithmeticProbe(reduction, sums, tree).run();
}

}  // namespace kvsim::gpu
