// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/reveal_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/reveal/attention/rescale_probe.h"
#include "gpu/reveal/attention/value_sums.h"
#include "gpu/reveal/order_fit.h"
#include "gpu/reveal/sum_classes.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Rises, in powers of two: one that every known kernel rescales for, and the smallest at which two
/// values times p do not overflow.
constexpr double large_rise = 12;
constexpr double small_rise = 0.75;

std::int64_t count_of(const KnowingKeys& keys) { return std::ranges::count(keys, 1); }

class Revealer {
 public:
  Revealer(AttentionCalls& calls, const AttentionRevealOptions& options)
      : calls_(calls), options_(options) {}

  Result<AttentionRevelation> run() {
    if (const auto done = find_classes(); !done) return done.error();
    const std::int64_t classes_end = calls_.calls();
    result_.calls.classes = classes_end;
    RescaleProbe probe(calls_, result_.classes.front().where.rows.front());
    if (const auto done = find_blocks(probe); !done) return done.error();
    if (const auto done = find_rescale_rule(probe); !done) return done.error();
    const std::int64_t blocks_end = calls_.calls();
    result_.calls.blocks = blocks_end - classes_end;
    for (RevealedValueSums& sums : result_.classes) {
      if (const auto done = find_tree(sums); !done) return done.error();
    }
    const std::int64_t tree_end = calls_.calls();
    result_.calls.tree = tree_end - blocks_end;
    if (const auto done = find_inner_sums(); !done) return done.error();
    const std::int64_t inner_end = calls_.calls();
    auto replay = replay_attention(calls_, result_.classes.front().tree,
                                   {options_.seed, options_.least_outputs});
    if (!replay) return replay.error();
    result_.replay = std::move(*replay);
    result_.calls.check = calls_.calls() - inner_end;
    result_.output = calls_.output();
    return std::move(result_);
  }

 private:
  Result<bool> find_classes() {
    ValueSums sums(calls_);
    auto found = find_sum_classes(sums, options_.seed);
    if (!found) return found.error();
    if (!found->repeatable) {
      return Error{ErrorKind::cannot_tell,
                   fmt::format("{}: the same call gave other bits the second time; its order is no "
                               "function of the shape",
                               calls_.description())};
    }
    result_.classes.reserve(found->classes.size());
    for (SumClass& where : found->classes)
      result_.classes.push_back({std::move(where), {}, {}, {}});
    return true;
  }

  /// q·k and the sum of p, where they are asked for.
  Result<bool> find_inner_sums() {
    const std::int64_t before = calls_.calls();
    result_.scores.why_not = "not looked at";
    result_.weights.why_not = "not looked at";
    if (options_.scores) {
      const bool walks = result_.blocks.direction() != KeyDirection::not_seen;
      auto scores = find_scores(calls_, walks ? result_.blocks.block_size() : calls_.shape().kv_len,
                                options_.seed);
      if (!scores) return scores.error();
      result_.scores = std::move(*scores);
    }
    const std::int64_t scores_end = calls_.calls();
    result_.calls.scores = scores_end - before;
    if (!options_.weights) return true;
    auto weights = find_weights(calls_, options_.most_calls, options_.seed);
    if (!weights) return weights.error();
    result_.weights = std::move(*weights);
    result_.calls.weights = calls_.calls() - scores_end;
    return true;
  }

  /// Whether any key is seen to know nothing of the first or last key's score, and whether those
  /// two keys are the only ones that know of their own.
  struct EndsSeen {
    bool any = false;
    bool alone = false;
  };
  Result<EndsSeen> look_at_ends(RescaleProbe& probe) {
    const std::int64_t keys = calls_.shape().kv_len;
    const auto of_first = probe.knowing(0, large_rise);
    if (!of_first) return of_first.error();
    const auto of_last = probe.knowing(keys - 1, large_rise);
    if (!of_last) return of_last.error();
    return EndsSeen{count_of(*of_first) < keys || count_of(*of_last) < keys,
                    count_of(*of_first) == 1 && count_of(*of_last) == 1};
  }

  /// In binary16 either sums overflow or fractions tell. Where every key but the raised one is
  /// taken for one that knows nothing, p was not rounded as fractions need it.
  Result<bool> choose_sign(RescaleProbe& probe) {
    if (calls_.layer().format.exponent_bits >= 8) return true;
    probe.ignore(RescaleProbe::Sign::fraction);
    const auto by_overflow = look_at_ends(probe);
    if (!by_overflow) return by_overflow.error();
    if (by_overflow->any) return true;
    probe.heed(RescaleProbe::Sign::fraction);
    const auto by_fraction = look_at_ends(probe);
    if (!by_fraction) return by_fraction.error();
    if (by_fraction->alone) probe.ignore(RescaleProbe::Sign::fraction);
    return true;
  }

  Result<bool> find_blocks(RescaleProbe& probe) {
    const std::int64_t keys = calls_.shape().kv_len;
    if (const auto done = choose_sign(probe); !done) return done;
    const AskKnowing ask = [&](std::int64_t raised) { return probe.knowing(raised, large_rise); };
    auto found = find_key_blocks(keys, ask);
    if (!found) {
      Error error = found.error();
      error.message = fmt::format("{}: {}", calls_.description(), error.message);
      return error;
    }
    result_.blocks = std::move(*found);
    return true;
  }

  /// Two neighbours that know of the raised score of a third key, which not all keys know of.
  struct Place {
    std::int64_t raised = -1;
    std::int64_t key = -1;
  };
  [[nodiscard]] Place place_of_rise() const {
    std::vector<const KeyBlock*> block_of(index(calls_.shape().kv_len));
    for (const KeyBlock& block : result_.blocks.blocks) {
      std::fill(block_of.begin() + block.begin, block_of.begin() + block.end, &block);
    }
    for (const KeyBlock& block : result_.blocks.blocks) {
      if (block.position == 0) continue;
      const auto later = [&](std::size_t key) {
        return static_cast<std::int64_t>(key) != block.begin &&
               block_of[key]->split == block.split && block_of[key]->position >= block.position;
      };
      for (std::size_t key = 0; key + 1 < block_of.size(); ++key) {
        if (later(key) && later(key + 1)) return {block.begin, static_cast<std::int64_t>(key)};
      }
    }
    return {};
  }

  Result<bool> find_rescale_rule(RescaleProbe& probe) {
    const Place place = place_of_rise();
    if (place.raised < 0) return true;
    result_.rescale = RescaleRule::every_rise;
    double kept = small_rise;
    double rescaled = large_rise;
    for (double rise = small_rise; rescaled - kept > 0.01 || rise == small_rise;
         rise = (kept + rescaled) / 2) {
      const auto knows = probe.knows(place.key, place.raised, rise);
      if (!knows) return knows.error();
      if (*knows && rise == small_rise) return true;
      (*knows ? rescaled : kept) = rise;
    }
    result_.rescale = RescaleRule::beyond_rise;
    result_.largest_kept_rise = probe.possible_rise(kept);
    result_.smallest_rescaled_rise = probe.possible_rise(rescaled);
    return true;
  }

  /// About how many calls the tree of a class takes.
  [[nodiscard]] std::int64_t calls_for(const SumClass& sums) const {
    const std::int64_t n = calls_.shape().kv_len;
    const auto levels = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(n)));
    return n * levels / static_cast<std::int64_t>(sums.columns.size());
  }

  /// The tree over some keys, which are its terms 0, 1, 2 …
  Result<AdditionTree> probe(const SumClass& where, std::vector<std::int64_t> keys) {
    ValueSums sums(calls_, std::move(keys));
    auto tree = probe_tree(sums, where, options_.seed);
    if (!tree) return tree.error();
    return std::move(tree->tree);
  }

  /// Copies `part`, whose term i is terms[i], into `tree`; the result is its root.
  static std::int32_t append(const AdditionTree& part, const std::vector<std::int64_t>& terms,
                             AdditionTree& tree) {
    std::vector<std::int32_t> copied;
    copied.reserve(part.nodes().size());
    for (const AdditionTree::Node& node : part.nodes()) {
      if (node.term >= 0) {
        copied.push_back(tree.add_term(terms[index(node.term)]));
        continue;
      }
      std::vector<std::int32_t> children;
      children.reserve(node.children.size());
      for (const std::int32_t child : node.children) children.push_back(copied[index(child)]);
      copied.push_back(tree.add_sum(std::move(children), node.exact));
    }
    return copied.back();
  }

  /// Splits of different sizes have different weights, under which masks of two splits do not
  /// cancel: each split is probed alone, and then one key of each together.
  Result<AdditionTree> probe_splits(const SumClass& where) {
    const std::int64_t splits = result_.blocks.splits();
    std::vector<std::int64_t> first_keys;
    std::vector<std::int32_t> roots;
    AdditionTree whole;
    for (std::int64_t split = 0; split < splits; ++split) {
      std::vector<std::int64_t> keys = result_.blocks.keys_of_split(split);
      first_keys.push_back(keys.front());
      const auto tree = probe(where, keys);
      if (!tree) return tree.error();
      roots.push_back(append(*tree, keys, whole));
    }
    auto merge = probe(where, first_keys);
    if (!merge) return merge.error();
    std::vector<std::int32_t> merged;
    for (const AdditionTree::Node& node : merge->nodes()) {
      if (node.term >= 0) {
        merged.push_back(roots[index(node.term)]);
        continue;
      }
      std::vector<std::int32_t> children;
      children.reserve(node.children.size());
      for (const std::int32_t child : node.children) children.push_back(merged[index(child)]);
      merged.push_back(whole.add_sum(std::move(children), node.exact));
    }
    if (!result_.merge) result_.merge = std::move(*merge);
    return whole;
  }

  Result<bool> find_tree(RevealedValueSums& sums) {
    const bool first = &sums == &result_.classes.front();
    if (!first && calls_for(sums.where) > options_.most_calls) {
      sums.why_no_tree = "not probed: it would take too many calls";
      return true;
    }
    auto tree = result_.blocks.splits() > 1 ? probe_splits(sums.where) : probe(sums.where, {});
    if (tree) {
      sums.tree = std::move(*tree);
      sums.orders = fit_orders(*sums.tree, calls_.layer().format);
      return true;
    }
    if (tree.error().kind != ErrorKind::cannot_tell) return tree.error();
    sums.why_no_tree = tree.error().message;
    return true;
  }

  AttentionCalls& calls_;
  const AttentionRevealOptions& options_;
  AttentionRevelation result_;
};

}  // namespace

std::string_view to_string(RescaleRule rule) {
  switch (rule) {
    case RescaleRule::every_rise:
      return "whenever the maximum rises";
    case RescaleRule::beyond_rise:
      return "where the maximum rises enough";
    case RescaleRule::not_seen:
      break;
  }
  return "not seen";
}

const RevealedValueSums& sums_of_last_query(const AttentionRevelation& found,
                                            const AttentionLayer& layer) {
  const std::int64_t row = layer.causal() ? 0 : (layer.shape.query_len - 1) * layer.shape.group();
  const auto sums = std::ranges::find_if(found.classes, [&](const RevealedValueSums& one) {
    return std::ranges::find(one.where.rows, row) != one.where.rows.end();
  });
  return sums == found.classes.end() ? found.classes.front() : *sums;
}

std::string merge_text(const AdditionTree& merge) {
  const std::int64_t splits = merge.terms();
  for (const std::string_view name : {"sequential", "reverse", "pairwise", "halving"}) {
    const auto order = parse_order(fmt::format("blocks(1,merge={})", name));
    if (!order) continue;
    const auto tree = build_sum_tree(*order, splits);
    if (tree && addition_tree(*tree) == merge) return std::string(name);
  }
  return to_string(merge);
}

Result<AttentionRevelation> reveal_attention(AttentionCalls& calls,
                                             const AttentionRevealOptions& options) {
  return Revealer(calls, options).run();
}

}  // namespace kvsim::gpu
