// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/attention_sweep.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_data.h"
#include "sim/order.h"
#include "sim/sum_tree.h"

namespace kvsim::gpu {
namespace {

std::vector<SizeClass> sizes_of(const std::vector<AttentionSizes>& classes) {
  std::vector<SizeClass> sizes;
  sizes.reserve(classes.size());
  for (const AttentionSizes& one : classes) sizes.push_back(one.sizes);
  return sizes;
}

/// By the bits of the last query.
class QuerySweep {
 public:
  QuerySweep(Backend& backend, AttentionLayer layer, std::uint64_t seed)
      : backend_(backend), layer_(std::move(layer)), seed_(seed) {
    AttentionLayer alone = layer_;
    alone.shape.query_len = 1;
    for (std::uint64_t number = 0; number < 3; ++number) {
      last_.push_back(attention_data(alone, seed, number));
    }
  }

  /// The last query and all keys are those of one query alone.
  Result<bool> look(std::int64_t queries) {
    layer_.shape.query_len = queries;
    const AttentionShape& shape = layer_.shape;
    std::vector<std::uint32_t>& bits = seen_[queries];
    for (const AttentionOperands& last : last_) {
      AttentionOperands data = attention_data(layer_, seed_ + 1, seen_.size());
      data.k = last.k;
      data.v = last.v;
      for (std::int64_t head = 0; head < shape.query_heads; ++head) {
        std::copy_n(last.q.begin() + head * shape.head_dim, shape.head_dim,
                    data.q.begin() + ((head + 1) * queries - 1) * shape.head_dim);
      }
      const auto outputs = AttentionCalls(backend_, layer_).run(std::move(data));
      if (!outputs) return outputs.error();
      for (std::int64_t head = 0; head < shape.query_heads; ++head) {
        const auto first = outputs->begin() + ((head + 1) * queries - 1) * shape.head_dim;
        std::transform(first, first + shape.head_dim, std::back_inserter(bits),
                       [](float x) { return std::bit_cast<std::uint32_t>(x); });
      }
    }
    return true;
  }

  [[nodiscard]] std::vector<SizeClass> classes() const {
    std::vector<SizeClass> classes;
    const std::vector<std::uint32_t>* before = nullptr;
    for (const auto& [queries, bits] : seen_) {
      if (before == nullptr || *before != bits) classes.push_back({queries, queries});
      classes.back().last = queries;
      before = &bits;
    }
    return classes;
  }

 private:
  Backend& backend_;
  AttentionLayer layer_;
  std::uint64_t seed_;
  std::vector<AttentionOperands> last_;
  std::map<std::int64_t, std::vector<std::uint32_t>> seen_;
};

/// The largest class of sums.
const RevealedValueSums& main_sums(const AttentionRevelation& found) {
  return found.classes.front();
}

bool walks(const AttentionRevelation& found) {
  return found.blocks.direction() != KeyDirection::not_seen;
}

std::string merge_of(const AttentionRevelation& found) {
  return found.merge ? merge_text(*found.merge) : std::string();
}

/// By what is revealed of each number of keys.
class KeySweep {
 public:
  KeySweep(Backend& backend, AttentionLayer layer, const AttentionRevealOptions& options)
      : backend_(backend), layer_(std::move(layer)), options_(options) {}

  Result<bool> look(std::int64_t keys) {
    layer_.shape.kv_len = keys;
    AttentionCalls calls(backend_, layer_);
    auto found = reveal_attention(calls, options_);
    if (!found) return found.error();
    known_.emplace(keys, std::move(*found));
    return true;
  }

  [[nodiscard]] std::vector<AttentionSizes> classes() const {
    std::vector<AttentionSizes> classes;
    std::vector<std::int64_t> members;
    for (const auto& [keys, found] : known_) {
      members.push_back(keys);
      auto shared = classes.empty() ? std::nullopt : shared_by(members);
      if (!shared) {
        members = {keys};
        classes.push_back({{keys, keys}, found, has_order(keys)});
        continue;
      }
      classes.back() = std::move(*shared);
    }
    return classes;
  }

 private:
  using Members = std::vector<std::int64_t>;

  /// Whether the walks over the keys can be one: what is not seen agrees with anything.
  [[nodiscard]] bool walk_alike(const Members& members) const {
    const AttentionRevelation* longest = nullptr;  // of those that walk
    RescaleRule rule = RescaleRule::not_seen;
    for (const std::int64_t keys : members) {
      const AttentionRevelation& found = known_.at(keys);
      const AttentionRevelation& first = known_.at(members.front());
      if (found.blocks.splits() != first.blocks.splits() || merge_of(found) != merge_of(first)) {
        return false;
      }
      if (found.rescale != RescaleRule::not_seen) {
        if (rule != RescaleRule::not_seen && rule != found.rescale) return false;
        rule = found.rescale;
      }
      if (walks(found)) longest = &found;
    }
    return longest == nullptr || std::ranges::all_of(members, [&](std::int64_t keys) {
             const AttentionRevelation& found = known_.at(keys);
             // A single key that is a block of its own is not seen.
             if (!walks(found)) return keys <= longest->blocks.block_size() + 1;
             return found.blocks.direction() == longest->blocks.direction() &&
                    found.blocks.block_size() == longest->blocks.block_size();
           });
  }

  /// Whether P·V of so many keys has the additions of an order.
  [[nodiscard]] bool fits(const Order& order, std::int64_t keys) const {
    const auto [place, is_new] = fits_.try_emplace({to_string(order), keys}, false);
    if (is_new) {
      const auto& tree = main_sums(known_.at(keys)).tree;
      const auto built = build_sum_tree(order, keys);
      place->second = tree && built && addition_tree(*built) == *tree;
    }
    return place->second;
  }

  [[nodiscard]] bool has_order(std::int64_t keys) const {
    return !main_sums(known_.at(keys)).orders.empty();
  }

  /// The orders that have P·V of all members of which the grammar has any; nothing where two of
  /// them share none.
  [[nodiscard]] std::optional<std::vector<Order>> orders_of(const Members& members) const {
    std::vector<Order> shared;
    bool any = false;
    for (const std::int64_t keys : members) {
      for (const Order& order : main_sums(known_.at(keys)).orders) {
        any = true;
        const bool known = std::ranges::any_of(
            shared, [&](const Order& other) { return to_string(other) == to_string(order); });
        const auto has = [&](std::int64_t other) {
          return !has_order(other) || fits(order, other);
        };
        if (!known && std::ranges::all_of(members, has)) shared.push_back(order);
      }
    }
    if (any && shared.empty()) return std::nullopt;
    return shared;
  }

  /// The kernels that give every bit of all members, with what was compared together; nothing
  /// where some have one and others do not.
  [[nodiscard]] std::optional<std::vector<KernelAgreement>> kernels_of(
      const Members& members) const {
    std::map<std::string, std::pair<std::size_t, KernelAgreement>> equal;
    bool any = false;
    for (const std::int64_t keys : members) {
      for (const KernelAgreement& one : known_.at(keys).replay.kernels) {
        if (one.compared == 0 || one.different > 0) continue;
        any = true;
        auto& [count, together] = equal[one.kernel];
        together.kernel = one.kernel;
        together.same_tree = one.same_tree && (count == 0 || together.same_tree);
        together.compared += one.compared;
        ++count;
      }
    }
    std::vector<KernelAgreement> shared;
    for (const auto& [name, one] : equal) {
      if (one.first == members.size()) shared.push_back(one.second);
    }
    if (any && shared.empty()) return std::nullopt;
    return shared;
  }

  /// Nothing where the members are no class. A number of keys that neither a kernel nor an order
  /// explains stands alone.
  [[nodiscard]] std::optional<AttentionSizes> shared_by(const Members& members) const {
    if (!walk_alike(members)) return std::nullopt;
    auto orders = orders_of(members);
    auto kernels = kernels_of(members);
    const bool all =
        std::ranges::all_of(members, [&](std::int64_t keys) { return has_order(keys); });
    if (!orders || !kernels || (kernels->empty() && !all)) return std::nullopt;
    AttentionSizes shared{{members.front(), members.back()}, known_.at(members.back()), all};
    shared.found.classes.front().orders = std::move(*orders);
    if (!kernels->empty()) shared.found.replay.kernels = std::move(*kernels);
    return shared;
  }

  Backend& backend_;
  AttentionLayer layer_;
  const AttentionRevealOptions& options_;
  std::map<std::int64_t, AttentionRevelation> known_;
  mutable std::map<std::pair<std::string, std::int64_t>, bool> fits_;  ///< each is built once
};

Result<std::vector<AttentionSizes>> sweep_queries(Backend& backend, AttentionLayer layer,
                                                  const AttentionRevealOptions& options,
                                                  const SizeSweep& range) {
  QuerySweep sweep(backend, layer, options.seed);
  const auto done = look_at_sizes(
      range, [&](std::int64_t queries) { return sweep.look(queries); },
      [&] { return sweep.classes(); });
  if (!done) return done.error();
  std::vector<AttentionSizes> classes;
  for (const SizeClass& sizes : sweep.classes()) {
    layer.shape.query_len = sizes.first;
    AttentionCalls calls(backend, layer);
    auto found = reveal_attention(calls, options);
    if (!found) return found.error();
    const bool has_order = !sums_of_last_query(*found, layer).orders.empty();
    classes.push_back({sizes, std::move(*found), has_order});
  }
  return classes;
}

}  // namespace

Result<std::vector<AttentionSizes>> sweep_attention(Backend& backend, AttentionLayer layer,
                                                    const AttentionRevealOptions& options,
                                                    AttentionSize swept, const SizeSweep& range) {
  AttentionRevealOptions each = options;
  each.weights = false;  // it takes many calls for each size
  if (swept == AttentionSize::queries) {
    return sweep_queries(backend, std::move(layer), each, range);
  }
  KeySweep sweep(backend, std::move(layer), each);
  const auto done = look_at_sizes(
      range, [&](std::int64_t keys) { return sweep.look(keys); },
      [&] { return sizes_of(sweep.classes()); });
  if (!done) return done.error();
  return sweep.classes();
}

}  // namespace kvsim::gpu
