// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_reveal.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "gpu/reveal/order_fit.h"
#include "gpu/reveal/positive_check.h"
#include "gpu/reveal/positive_rows.h"
#include "gpu/reveal/positive_tree.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// All terms summed exactly and rounded once.
AdditionTree exact_tree(std::int64_t terms) {
  AdditionTree tree;
  std::vector<std::int32_t> children;
  children.reserve(index(terms));
  for (std::int64_t term = 0; term < terms; ++term) children.push_back(tree.add_term(term));
  tree.add_sum(std::move(children), true);
  return tree;
}

class PositiveRevealer {
 public:
  PositiveRevealer(PositiveOperator& of, const RevealOptions& options)
      : operator_(of), options_(options) {}

  Result<PositiveRevelation> run() {
    if (const auto done = find_classes(); !done) return done.error();
    operator_.use_rows(result_.classes.front().rows);
    if (const auto done = find_tree(); !done) return done.error();
    const std::int64_t before = operator_.calls();
    auto exps = find_exp(operator_, options_.seed);
    if (!exps) return exps.error();
    result_.exps = std::move(*exps);
    result_.calls.arithmetic = operator_.calls() - before;
    const auto weights = takes_weights();
    if (!weights) return weights.error();
    amount_ = {options_.least_outputs, *weights};
    for (RevealedRows& rows : result_.classes) {
      operator_.use_rows(rows.rows);
      if (const auto done = explain(rows); !done) return done.error();
    }
    operator_.use_rows({});
    return std::move(result_);
  }

 private:
  /// Rows of a call that give other bits for the same numbers.
  Result<bool> find_classes() {
    const std::int64_t before = operator_.calls();
    const std::int64_t count = operator_.rows();
    const std::size_t n = index(operator_.terms());
    std::vector<std::vector<std::uint32_t>> signatures(index(count));
    for (const PositiveData data : {PositiveData::gaussian, PositiveData::wide}) {
      const auto row = positive_rows(operator_, nullptr, data, 1, options_.seed, 3);
      if (!row) return row.error();
      std::vector<float> x;
      x.reserve(index(count) * n);
      for (std::int64_t i = 0; i < count; ++i) x.insert(x.end(), row->begin(), row->end());
      const auto out = operator_.run({.x = x});
      if (!out) return out.error();
      const auto again = operator_.run({.x = x});
      if (!again) return again.error();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>((*out)[i]);
        signatures[i / n].push_back(bits);
        if (bits == std::bit_cast<std::uint32_t>((*again)[i])) continue;
        return Error{ErrorKind::cannot_tell,
                     fmt::format("{}: the same call gave other bits the second time; its order is "
                                 "no function of the shape",
                                 operator_.description())};
      }
    }
    std::map<std::vector<std::uint32_t>, std::vector<std::int64_t>> groups;
    for (std::int64_t i = 0; i < count; ++i) {
      groups[std::move(signatures[index(i)])].push_back(i);
    }
    for (auto& [signature, rows] : groups) {
      RevealedRows revealed;
      revealed.rows = std::move(rows);
      result_.classes.push_back(std::move(revealed));
    }
    std::ranges::sort(result_.classes, [](const RevealedRows& a, const RevealedRows& b) {
      return std::pair(b.rows.size(), a.rows.front()) < std::pair(a.rows.size(), b.rows.front());
    });
    result_.calls.classes = operator_.calls() - before;
    return true;
  }

  Result<bool> find_tree() {
    const std::int64_t before = operator_.calls();
    const std::int64_t n = operator_.terms();
    AbsorptionAnswers ask;
    if (n > 2) {
      auto rows = AbsorptionRows::make(operator_);
      if (!rows) return rows.error();
      rows_.emplace(std::move(*rows));
      result_.absorbs = rows_->absorbs();
      ask = [this](const std::vector<AbsorptionProbe>& probes) { return rows_->answer(probes); };
    }
    if (result_.absorbs) {
      auto tree = absorption_tree(n, ask, operator_.description(), options_.seed);
      if (!tree) return tree.error();
      result_.calls.probes = tree->probes;
      result_.tree = std::move(tree->tree);
    } else {
      result_.tree = exact_tree(n);
    }
    result_.calls.tree = operator_.calls() - before;
    result_.orders = fit_orders(result_.tree, softfloat::binary32);
    // Sums of rows take no matrix unit.
    std::erase_if(result_.orders, [](const Order& order) { return unit_of(order).has_value(); });
    return true;
  }

  /// Whether the operator multiplies by a weight.
  Result<bool> takes_weights() {
    if (operator_.kind() != PositiveKind::rms_norm) return false;
    const std::vector<float> x(index(operator_.rows() * operator_.terms()), 1.0F);
    const std::vector<float> weight(index(operator_.terms()), 1.0F);
    const auto out = operator_.run({.x = x, .weight = weight});
    if (out) return true;
    if (out.error().kind == ErrorKind::file) return out.error();
    return false;
  }

  [[nodiscard]] PositiveModel model(const Order& order) const {
    PositiveModel model;
    model.kind = operator_.kind();
    model.order = order;
    model.output = operator_.output();
    return model;
  }

  void add_norms(const Order& order, std::vector<PositiveModel>& all) const {
    for (const Product product : {Product::rounded, Product::fused}) {
      for (const RootRule root : {RootRule::one_over_root, RootRule::one_rounding}) {
        for (const WeightRule weight :
             {WeightRule::after_rounding, WeightRule::before_rounding, WeightRule::plus_one}) {
          if (!amount_.weights && weight != WeightRule::after_rounding) continue;
          PositiveModel one = model(order);
          one.product = product;
          one.root = root;
          one.weight = weight;
          all.push_back(std::move(one));
        }
      }
    }
  }

  [[nodiscard]] std::vector<ExpChoice> exps() const {
    if (operator_.kind() == PositiveKind::softmax) return result_.exps;
    std::vector<ExpChoice> all;
    for (const ExpModelRow& row : exp_models()) all.push_back({.exp = row.model});
    return all;
  }

  [[nodiscard]] std::vector<PositiveModel> models(const std::vector<Order>& orders) const {
    std::vector<PositiveModel> all;
    if (operator_.kind() == PositiveKind::rms_norm) {
      for (const Order& order : orders) add_norms(order, all);
      return all;
    }
    // Sums of the same additions are the same sums: one order stands for all.
    if (orders.empty()) return all;
    std::vector<SoftmaxResult> results = {SoftmaxResult::times_reciprocal, SoftmaxResult::quotient};
    if (operator_.kind() == PositiveKind::log_softmax) {
      results = {SoftmaxResult::sleef_logarithm, SoftmaxResult::logarithm};
    }
    for (const ExpChoice& exp : exps()) {
      for (const SoftmaxResult result : results) {
        PositiveModel one = model(orders.front());
        one.exp = exp;
        one.result = result;
        all.push_back(std::move(one));
      }
    }
    return all;
  }

  Result<bool> explain(RevealedRows& rows) {
    const std::int64_t before = operator_.calls();
    const AbsorptionRows* const absorption = rows_ && result_.absorbs ? &*rows_ : nullptr;
    const auto seen = observe(operator_, absorption, amount_, options_.seed, 0);
    if (!seen) return seen.error();
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (PositiveModel& candidate : models(result_.orders)) {
      const auto compared = compare(candidate, operator_.terms(), *seen, best);
      if (!compared) return compared.error();
      if (compared->different >= best) continue;
      const PositiveModel& chosen = rows.model.emplace(std::move(candidate));
      if (const auto done = check(chosen, rows, absorption); !done) return done;
      if (rows.explained) break;
      // What differs in the check alone may still be beaten.
      best = std::max<std::int64_t>(compared->different, 1);
    }
    if (rows.model && !rows.explained) {
      if (const auto done = check(*rows.model, rows, absorption, true); !done) return done;
    }
    result_.calls.check += operator_.calls() - before;
    return true;
  }

  /// On rows that took no part in the choice; `makes_small`: looks for the smallest difference.
  Result<bool> check(const PositiveModel& model_of_rows, RevealedRows& rows,
                     const AbsorptionRows* absorption, bool makes_small = false) {
    const auto seen = observe(operator_, absorption, amount_, options_.seed, 1);
    if (!seen) return seen.error();
    const auto compared =
        compare(model_of_rows, operator_.terms(), *seen, std::numeric_limits<std::int64_t>::max());
    if (!compared) return compared.error();
    rows.outputs_checked = compared->compared;
    rows.outputs_different = compared->different;
    rows.rows_checked = compared->rows;
    rows.explained = compared->different == 0;
    if (rows.explained || !makes_small) return true;
    auto failing = shrink(operator_, model_of_rows, (*seen)[compared->observation], *compared);
    if (!failing) return failing.error();
    rows.failing = std::move(*failing);
    return true;
  }

  PositiveOperator& operator_;
  const RevealOptions& options_;
  PositiveRevelation result_;
  std::optional<AbsorptionRows> rows_;
  PositiveAmount amount_;
};

}  // namespace

bool PositiveRevelation::explained() const {
  return std::ranges::all_of(classes, [](const RevealedRows& rows) { return rows.explained; });
}

Result<PositiveRevelation> reveal_positive(PositiveOperator& of, const RevealOptions& options) {
  return PositiveRevealer(of, options).run();
}

}  // namespace kvsim::gpu
