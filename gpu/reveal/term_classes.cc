// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/term_classes.h"

#include <algorithm>
#include <map>
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
              const SizeSweep& range)
      : backend_(backend), shape_(std::move(shape)), options_(options), range_(range) {}

  Result<std::vector<TermClass>> run() {
    const auto done = look_at_sizes(
        range_, [&](std::int64_t terms) { return try_terms(terms); },
        [&] {
          std::vector<SizeClass> sizes;
          const std::vector<TermClass> found = classes();
          sizes.reserve(found.size());
          for (const TermClass& one : found) sizes.push_back(one.terms);
          return sizes;
        });
    if (!done) return done.error();
    return classes();
  }

 private:
  Result<bool> try_terms(std::int64_t terms) {
    shape_.terms = terms;
    const auto reduction = make_reduction(backend_, shape_);
    if (!reduction) return reduction.error();
    auto found = reveal(**reduction, options_);
    if (!found) return found.error();
    known_.emplace(terms, known_of(std::move(*found), terms));
    return true;
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
  SizeSweep range_;
  std::map<std::int64_t, Known> known_;
};

}  // namespace

Result<std::vector<TermClass>> sweep_terms(Backend& backend, ReductionShape shape,
                                           const RevealOptions& options, const SizeSweep& range) {
  return TermSweeper(backend, std::move(shape), options, range).run();
}

}  // namespace kvsim::gpu
