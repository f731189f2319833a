// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/reveal.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/reveal/order_fit.h"
#include "gpu/reveal/replay_check.h"
#include "gpu/reveal/sum_classes.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

/// Reveals one operator, class by class.
class Revealer {
 public:
  Revealer(Reduction& reduction, const RevealOptions& options)
      : reduction_(reduction), options_(options) {}

  Result<Revelation> run() {
    const std::int64_t before = reduction_.calls();
    auto classes = find_sum_classes(reduction_, options_.seed);
    if (!classes) return classes.error();
    result_.calls.classes = reduction_.calls() - before;
    result_.repeatable = classes->repeatable;
    if (!classes->repeatable) {
      return Error{ErrorKind::cannot_tell,
                   fmt::format("{}: the same call gave other bits the second time; its order is no "
                               "function of the shape",
                               reduction_.description())};
    }
    for (SumClass& sums : classes->classes) {
      RevealedSums revealed;
      revealed.where = std::move(sums);
      result_.classes.push_back(std::move(revealed));
    }
    for (RevealedSums& sums : result_.classes) {
      if (const auto done = reveal_class(sums); !done) return done.error();
    }
    return std::move(result_);
  }

 private:
  /// After the first round, what is not explained is not looked at more closely yet.
  enum class Round : std::uint8_t { first, last };

  /// About how many calls the tree of a class takes.
  [[nodiscard]] std::int64_t calls_for(const SumClass& sums) const {
    const auto side = std::max(sums.rows.size(), sums.columns.size());
    const std::int64_t n = reduction_.terms();
    const auto levels = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n)));
    return n * levels / static_cast<std::int64_t>(side);
  }

  Result<bool> reveal_class(RevealedSums& sums) {
    const bool first = &sums == &result_.classes.front();
    // Where the tree costs too much, what holds for the larger classes may hold here as well.
    if (!first && calls_for(sums.where) > options_.most_calls) return check_known(sums);
    auto tree = probe_tree(reduction_, sums.where, options_.seed);
    if (!tree) return tree.error();
    result_.calls.tree += tree->calls;
    result_.calls.probes += tree->probes;
    sums.tree = std::move(tree->tree);
    if (options_.arithmetic) {
      auto arithmetic = probe_arithmetic(reduction_, sums.where, *sums.tree);
      if (!arithmetic) return arithmetic.error();
      sums.arithmetic = std::move(*arithmetic);
      result_.calls.arithmetic += sums.arithmetic.calls;
    }
    sums.orders = fit_orders(*sums.tree, reduction_.input());
    auto simple = choose(sums, models(sums, sums.orders), Round::first);
    if (!simple || sums.explained) return simple;
    const std::vector<Order> nested = fit_orders(*sums.tree, reduction_.input(), true, 48);
    std::vector<SumModel> rest =
        models(sums, nested.size() > sums.orders.size() ? nested : sums.orders);
    for (SumModel& model : tree_models(sums)) rest.push_back(std::move(model));
    return choose(sums, std::move(rest), Round::last);
  }

  Result<bool> check_known(RevealedSums& sums) {
    std::vector<SumModel> known;
    for (const RevealedSums& other : result_.classes) {
      if (other.explained && other.model) known.push_back(*other.model);
    }
    // An edge is often computed with other lanes.
    for (const std::int64_t width : {4, 8, 16}) {
      for (const Product product : {Product::fused, Product::rounded}) {
        const auto order = parse_order(fmt::format("lanes({},1,join=halving,tail=scalar)", width));
        if (order) known.push_back(model(*order, product, softfloat::binary32));
      }
    }
    if (const auto done = choose(sums, std::move(known), Round::last); !done) return done;
    if (!sums.explained) sums.model.reset();
    return true;
  }

  [[nodiscard]] SumModel model(const Order& order, Product product,
                               const Format& accumulator) const {
    SumModel model;
    model.order = order;
    model.product = product;
    model.input = reduction_.input();
    model.accumulator = accumulator;
    model.output = reduction_.output();
    model.mean = reduction_.is_mean();
    return model;
  }

  /// Formats that sums may be kept in, by the bits that were seen.
  [[nodiscard]] std::vector<Format> accumulators(const RevealedSums& sums) const {
    std::vector<Format> formats = {softfloat::binary32};
    const auto keeps = [&](int precision) {
      return std::any_of(sums.arithmetic.sums.begin(), sums.arithmetic.sums.end(),
                         [&](const NodeRounding& seen) { return seen.precision == precision; });
    };
    if (reduction_.input() == softfloat::binary16 && keeps(11)) {
      formats.push_back(softfloat::binary16);
    }
    if (keeps(8)) formats.push_back(softfloat::bfloat16);
    return formats;
  }

  /// Whether an order's unit aligns zero terms otherwise than was seen.
  [[nodiscard]] static bool contradicts(const Seen& zero_exponent, const Order& order) {
    const auto unit = unit_of(order);
    return unit && !agrees(zero_exponent, seen_number(unit->zero_exponent)).value_or(true);
  }

  /// What has these additions and does not contradict what was seen of the arithmetic.
  [[nodiscard]] std::vector<SumModel> models(const RevealedSums& sums,
                                             const std::vector<Order>& orders) const {
    std::vector<Product> products = {Product::fused, Product::rounded, Product::exact};
    if (sums.arithmetic.product == "rounded") products = {Product::rounded};
    if (sums.arithmetic.product == "fused") products = {Product::fused, Product::exact};
    std::vector<std::pair<Product, Order>> all_orders;
    for (const Product product : products) {
      for (const Order& order : orders) all_orders.emplace_back(product, order);
    }
    std::vector<SumModel> all;
    for (const auto& [product, order] : all_orders) {
      std::vector<Order> rounded = {order};
      if (reduction_.output().precision < 24) {
        rounded = with_roundings(order, reduction_.output());
      }
      for (const Order& one : rounded) {
        for (const Format& accumulator : accumulators(sums)) {
          if (!check_formats(one, reduction_.input(), accumulator)) continue;
          if (contradicts(sums.arithmetic.zero_exponent, one)) continue;
          // A unit's products are its own, and those of a narrow format are exact.
          const bool no_matter = (unit_of(one) || sums.arithmetic.product == "not visible") &&
                                 accumulator.precision >= 2 * reduction_.input().precision;
          if (no_matter && product != products.front()) continue;
          all.push_back(model(one, product, accumulator));
        }
      }
    }
    return all;
  }

  /// The tree itself, where the grammar has no word for it.
  [[nodiscard]] std::vector<SumModel> tree_models(const RevealedSums& sums) const {
    std::vector<bool> fused;
    fused.reserve(sums.arithmetic.products.size());
    for (const ProductSeen seen : sums.arithmetic.products) {
      fused.push_back(seen != ProductSeen::rounded);
    }
    SumModel itself = model(Order{}, Product::fused, accumulators(sums).back());
    if (sums.arithmetic.product == "rounded") itself.product = Product::rounded;
    itself.order.reset();
    std::vector<SumModel> all;
    if (const auto& tree = sums.tree) {
      itself.tree = sum_tree(*tree, fused);
      if (itself.tree.nodes.empty()) return all;
      all.push_back(itself);
      // A last part that is summed by a plain loop in binary64, as C code often does.
      if (reduction_.input() != softfloat::binary32) return all;
      for (const std::int64_t first : {last_part(*tree), std::int64_t{0}}) {
        if (first < 0) continue;
        itself.wide_from = first;
        all.push_back(itself);
      }
    }
    return all;
  }

  /// Where the last operand of the whole sum begins, if it is the sum of the last terms; else -1.
  [[nodiscard]] static std::int64_t last_part(const AdditionTree& tree) {
    if (tree.root().children.size() != 2) return -1;
    const AdditionTree::Node& last =
        tree.nodes()[static_cast<std::size_t>(tree.root().children.back())];
    return last.smallest + last.leaves == tree.terms() ? last.smallest : -1;
  }

  /// The first model that gives every output on all data; then the check.
  Result<bool> choose(RevealedSums& sums, std::vector<SumModel> candidates, Round round) {
    const std::int64_t before = reduction_.calls();
    std::vector<Observation> seen;
    for (const DataKind kind : {DataKind::cancel, DataKind::wide, DataKind::tiny}) {
      auto observation = observe(reduction_, kind, options_.seed, 8);
      if (!observation) return observation.error();
      seen.push_back(std::move(*observation));
    }
    struct Score {
      std::int64_t different = 0;  // on cancel and wide data
      std::int64_t tiny = 0;
    };
    result_.calls.check += reduction_.calls() - before;
    std::optional<Score> best;
    int checked = 0;
    for (SumModel& candidate : candidates) {
      Score score;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto compared = compare(reduction_, candidate, sums.where, seen[i]);
        if (!compared) return compared.error();
        (i < 2 ? score.different : score.tiny) += compared->different;
        if (i < 2 && best && score.different > best->different) break;
      }
      const bool better = !best || score.different < best->different ||
                          (score.different == best->different && score.tiny < best->tiny);
      if (!better) continue;
      best = score;
      sums.model = std::move(candidate);
      if (score.different > 0 || score.tiny > 0) continue;
      // Few outputs may agree by chance: what fails the check gives way to the next one.
      if (const auto done = check(sums); !done || sums.explained) return done;
      best->tiny = 1;
      if (++checked == 6) break;
    }
    if (!best) return true;
    sums.subnormals_as_replayed = best->tiny == 0;
    return sums.explained || round == Round::first ? Result<bool>(true) : check(sums);
  }

  Result<bool> check(RevealedSums& sums) {
    if (!sums.model) return true;
    const std::int64_t before = reduction_.calls();
    sums.outputs_checked = 0;
    sums.outputs_different = 0;
    sums.failing.reset();
    for (std::uint64_t number = 16; sums.outputs_checked < options_.least_outputs; ++number) {
      const auto observation = observe(reduction_, DataKind::cancel, options_.seed, number);
      if (!observation) return observation.error();
      const auto compared = compare(reduction_, *sums.model, sums.where, *observation);
      if (!compared) return compared.error();
      sums.outputs_checked += compared->compared;
      sums.outputs_different += compared->different;
      if (compared->different == 0) continue;
      auto failing = shrink(reduction_, *sums.model, *observation, *compared);
      if (!failing) return failing.error();
      sums.failing = std::move(*failing);
      break;
    }
    sums.explained = sums.outputs_different == 0;
    result_.calls.check += reduction_.calls() - before;
    return true;
  }

  Reduction& reduction_;
  const RevealOptions& options_;
  Revelation result_;
};

}  // namespace

bool Revelation::explained() const {
  return std::all_of(classes.begin(), classes.end(),
                     [](const RevealedSums& sums) { return sums.explained; });
}

Result<Revelation> reveal(Reduction& reduction, const RevealOptions& options) {
  return Revealer(reduction, options).run();
}

}  // namespace kvsim::gpu
