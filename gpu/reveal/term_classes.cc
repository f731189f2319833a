// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/term_classes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gpu/reveal/addition_tree.h"
#include "sim/sum_tree.h"

namespace kvsim::gpu {
namespace {

/// What is compared of one number of terms.
struct Known {
  Revelation found;
  Product product = Product::fused;
  std::string tree;           ///< of the model, as its order builds it; empty: none
  std::vector<Order> orders;  ///< that have it, the model's first
};

/// The tree of an order as far as it matters: where products are fused, with how each term enters.
std::string tree_text(const Order& order, std::int64_t terms, Product product) {
  const auto tree = build_sum_tree(order, terms);
  if (!tree) return {};
  return product == Product::fused ? digest(*tree) : digest(addition_tree(*tree));
}

Known known_of(Revelation found, std::int64_t terms) {
  Known known;
  const RevealedSums& main = found.classes.front();
  if (main.explained && main.model && main.model->order) {
    const bool exact = main.arithmetic.product == "not visible" && !unit_of(*main.model->order);
    known.product = exact ? Product::exact : main.model->product;
    known.tree = tree_text(*main.model->order, terms, known.product);
    known.orders.push_back(*main.model->order);
    for (const Order& order : main.orders) known.orders.push_back(order);
  }
  known.found = std::move(found);
  return known;
}

class TermSweeper {
 public:
  TermSweeper(Backend& backend, ReductionShape shape, const RevealOptions& options,
              const TermSweep& range)
      : backend_(backend), shape_(std::move(shape)), options_(options), range_(range) {}

  Result<std::vector<TermClass>> run() {
    const bool all = range_.last - range_.first < range_.every;
    // Close together at the small end, where kernels change.
    for (std::int64_t step = 0; range_.first + step <= range_.last;
         step = all || step < 8 ? step + 1 : step + step / 2) {
      if (const auto done = try_terms(range_.first + step); !done) return done.error();
    }
    if (const auto done = try_terms(range_.last); !done) return done.error();
    for (;;) {
      const std::vector<std::int64_t> next = between(classes());
      if (next.empty()) break;
      for (const std::int64_t terms : next) {
        if (const auto done = try_terms(terms); !done) return done.error();
      }
    }
    return classes();
  }

 private:
  Result<bool> try_terms(std::int64_t terms) {
    if (known_.contains(terms)) return true;
    shape_.terms = terms;
    const auto reduction = make_reduction(backend_, shape_);
    if (!reduction) return reduction.error();
    auto found = reveal(**reduction, options_);
    if (!found) return found.error();
    known_.emplace(terms, known_of(std::move(*found), terms));
    return true;
  }

  /// Half way between neighbouring classes that are apart, as many as may still be tried.
  [[nodiscard]] std::vector<std::int64_t> between(const std::vector<TermClass>& classes) const {
    std::vector<std::int64_t> next;
    const std::int64_t left = range_.most - static_cast<std::int64_t>(known_.size());
    for (std::size_t i = 1; i < classes.size(); ++i) {
      const std::int64_t before = classes[i - 1].terms.last;
      const std::int64_t gap = classes[i].terms.first - before;
      if (gap > 1 && static_cast<std::int64_t>(next.size()) < left) {
        next.push_back(before + gap / 2);
      }
    }
    return next;
  }

  /// The first order of any member that has the trees of all of them.
  [[nodiscard]] std::optional<Order> shared(const std::vector<std::int64_t>& members) const {
    const Product product = known_.at(members.front()).product;
    for (const std::int64_t member : members) {
      const Known& known = known_.at(member);
      if (known.tree.empty() || known.product != product) return std::nullopt;
    }
    for (const std::int64_t member : members) {
      for (const Order& order : known_.at(member).orders) {
        const bool fits = std::ranges::all_of(members, [&](std::int64_t other) {
          return tree_text(order, other, product) == known_.at(other).tree;
        });
        if (fits) return order;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<TermClass> classes() const {
    std::vector<TermClass> classes;
    std::vector<std::int64_t> members;
    for (const auto& [terms, known] : known_) {
      members.push_back(terms);
      std::optional<Order> order = classes.empty() ? std::nullopt : shared(members);
      if (!order) {
        members = {terms};
        classes.push_back({{terms, terms}, known.found});
        continue;
      }
      classes.back().terms.last = terms;
      std::optional<SumModel>& model = classes.back().found.classes.front().model;
      if (model) model->order = std::move(order);
    }
    return classes;
  }

  Backend& backend_;
  ReductionShape shape_;
  const RevealOptions& options_;
  TermSweep range_;
  std::map<std::int64_t, Known> known_;
};

}  // namespace

Result<std::vector<TermClass>> sweep_terms(Backend& backend, ReductionShape shape,
                                           const RevealOptions& options, const TermSweep& range) {
  return TermSweeper(backend, std::move(shape), options, range).run();
}

}  // namespace kvsim::gpu
