// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/order_fit.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/sum_tree.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;
using Node = AdditionTree::Node;

OrderItem item_of(OrderKind kind, std::int64_t size = 0) {
  OrderItem item;
  item.kind = kind;
  item.size = size;
  return item;
}

/// Whether two units compute the same: everything but what they are called and where it is written.
bool computes_alike(const MatrixUnit& a, const MatrixUnit& b) {
  return a.operation == b.operation && a.input == b.input && a.operand == b.operand &&
         a.output == b.output && a.conversion == b.conversion && a.fan_in == b.fan_in &&
         a.fraction_bits == b.fraction_bits && a.final_bits == b.final_bits &&
         a.zero_exponent == b.zero_exponent && a.order == b.order && a.addend == b.addend &&
         (a.addend == Addend::first || a.blocks == b.blocks) && a.accumulators == b.accumulators &&
         a.final_rounding_down == b.final_rounding_down && a.mode == b.mode &&
         a.operand_rounding == b.operand_rounding;
}

/// The units that read `input`, one for each way to compute.
std::vector<const MatrixUnit*> units_of(const Format& input) {
  std::vector<const MatrixUnit*> units;
  for (const MatrixUnit& unit : matrix_units()) {
    if (unit.operand != input || unit.scale_block > 0) continue;
    const bool known = std::any_of(units.begin(), units.end(), [&](const MatrixUnit* other) {
      return computes_alike(*other, unit);
    });
    if (!known) units.push_back(&unit);
  }
  return units;
}

/// Orders of one tree; looks into subtrees for what stands inside an item.
class Fit {
 public:
  Fit(const AdditionTree& tree, const Format& input, bool nested, std::size_t most, int depth)
      : tree_(tree),
        text_(to_string(tree)),
        n_(tree.terms()),
        input_(input),
        nested_(nested),
        most_(most),
        depth_(depth) {}

  std::vector<Order> orders() {
    for (const OrderKind kind : {OrderKind::sequential, OrderKind::exact, OrderKind::pairwise,
                                 OrderKind::halving, OrderKind::numpy_pairwise}) {
      offer({{item_of(kind)}});
    }
    for (const MatrixUnit* unit : units_of(input_)) {
      OrderItem item = item_of(OrderKind::matrix_unit);
      item.unit = kvsim::to_string(*unit);
      offer({{item}});
    }
    for (const std::int64_t width : {4, 8, 16, 32}) {
      OrderItem item = item_of(OrderKind::torch_cascade, width);
      offer({{item}});
      item.accumulators = 2;
      offer({{item}});
    }
    offer({{item_of(OrderKind::reverse)}});
    // For numbers of 16 bits a word of its own comes before the lanes that it is made of; for
    // others, lanes that say the same come first.
    const bool half_width = input_.width() == 16;
    if (half_width && depth_ == 0) torch_dots();
    if (nested_ && depth_ == 0) permuted();
    if (depth_ < deepest && n_ > 2 && wants_more()) lanes();
    if (!half_width && depth_ == 0 && wants_more()) torch_dots();
    if (depth_ < deepest && n_ > 2 && wants_more()) blocks();
    if (found_.empty() && depth_ == 0) permuted();
    return std::move(found_);
  }

 private:
  static constexpr int deepest = 3;
  static constexpr std::size_t inner_orders = 4;
  static constexpr std::size_t longest_head = 64;  // terms before the lanes

  [[nodiscard]] bool wants_more() const { return nested_ || found_.empty(); }

  bool offer(Order order) {
    if (found_.size() >= most_) return false;
    if (std::find(found_.begin(), found_.end(), order) != found_.end()) return false;
    const Result<SumTree> built = build_sum_tree(order, n_);
    if (!built) return false;
    const AdditionTree additions = addition_tree(*built);
    if (additions.nodes().size() != tree_.nodes().size() || to_string(additions) != text_) {
      return false;
    }
    found_.push_back(std::move(order));
    return true;
  }

  /// The nodes above term 0, from that term to the whole.
  std::vector<std::int32_t> above_first_term() const {
    std::vector<std::int32_t> path;
    for (std::size_t i = 0; i < tree_.nodes().size(); ++i) {
      const Node& node = tree_.nodes()[i];
      const bool above =
          !node.children.empty() && !path.empty() && node.children.front() == path.back();
      if (node.term == 0 || above) path.push_back(static_cast<std::int32_t>(i));
    }
    return path;
  }

  std::vector<Order> inner_of(std::int32_t node) const {
    const AdditionTree below = tree_.below(node);
    return Fit(below, input_, false, inner_orders, depth_ + 1).orders();
  }
  static Order inside(OrderItem outer, const Order& inner) {
    Order order;
    order.items.push_back(std::move(outer));
    const bool plain = inner.items.size() == 1 && inner.items.front() == OrderItem{};
    if (!plain) order.items.insert(order.items.end(), inner.items.begin(), inner.items.end());
    return order;
  }

  /// Consecutive blocks whose sums are nodes.
  void blocks() {
    std::vector<std::int64_t> largest(tree_.nodes().size(), 0);
    std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> intervals;
    for (std::size_t i = 0; i < tree_.nodes().size(); ++i) {
      const Node& node = tree_.nodes()[i];
      largest[i] = node.term;
      for (const std::int32_t child : node.children) {
        largest[i] = std::max(largest[i], largest[index(child)]);
      }
      if (largest[i] - node.smallest + 1 == node.leaves) {
        intervals[{node.smallest, node.leaves}] = static_cast<std::int32_t>(i);
      }
    }
    std::vector<std::pair<double, std::int32_t>> firsts;
    for (const std::int32_t first : above_first_term()) {
      const Node& node = tree_.nodes()[index(first)];
      const std::int64_t length = node.leaves;
      if (length < 2 || length == n_ || largest[index(first)] != length - 1) continue;
      bool fits = true;
      for (std::int64_t start = length; fits && start < n_; start += length) {
        fits = intervals.contains({start, std::min(length, n_ - start)});
      }
      // The fuller the last block, the likelier the length.
      const double last = static_cast<double>((n_ - 1) % length + 1) / static_cast<double>(length);
      if (fits) firsts.emplace_back(-last, first);
    }
    std::sort(firsts.begin(), firsts.end());
    for (const auto& [last, first] : firsts) {
      if (!wants_more()) return;
      merged(tree_.nodes()[index(first)].leaves, inner_of(first));
    }
  }
  void merged(std::int64_t length, const std::vector<Order>& inner) {
    const std::int64_t parts = (n_ - 1) / length + 1;
    for (const Order& order : inner) {
      for (const MergeOrder merge :
           {MergeOrder::sequential, MergeOrder::pairwise, MergeOrder::halving,
            MergeOrder::butterfly, MergeOrder::reverse}) {
        OrderItem item = item_of(OrderKind::blocks, length);
        item.merge = merge;
        if (offer(inside(item, order))) continue;
        item.kind = OrderKind::split;
        item.size = parts;
        if (part_length(item, n_) == length) offer(inside(item, order));
      }
    }
  }

  /// PyTorch's dot products of 16-bit numbers. Fewer than two vectors are no more than a sequence.
  void torch_dots() {
    for (const std::int64_t width : {4, 8, 16}) {
      if (n_ >= 2 * width) offer({{item_of(OrderKind::torch_dot, width)}});
    }
  }

  /// Terms that are as far apart as there are accumulators, perhaps behind the first few, which are
  /// next to each other.
  void lanes() {
    std::vector<std::pair<std::int64_t, std::int64_t>> tried;  // head, distance
    for (const std::int32_t above : above_first_term()) {
      if (tree_.nodes()[index(above)].leaves < 2) continue;
      const std::vector<std::int64_t> terms = tree_.terms_below(above);
      const std::size_t head = head_of(terms);
      if (head + 1 >= terms.size() || head > longest_head) continue;
      const std::int64_t step = terms[head + 1] - terms[head];
      const auto end = static_cast<std::int64_t>(head) +
                       static_cast<std::int64_t>(terms.size() - head + 1) * step;
      if (step < 2 || end <= n_ - step) continue;
      bool even = true;
      for (std::size_t k = head + 2; even && k < terms.size(); ++k) {
        even = terms[k] - terms[k - 1] == step;
      }
      const std::pair<std::int64_t, std::int64_t> seen{head, step};
      if (!even || std::find(tried.begin(), tried.end(), seen) != tried.end()) continue;
      tried.push_back(seen);
      // What has a head takes nothing inside.
      lanes_of(step, head == 0 ? inner_of(above) : std::vector<Order>{Order{{OrderItem{}}}},
               static_cast<std::int64_t>(head));
    }
    if (!tried.empty()) return;
    // Where every lane has one term at most nothing but the join shows.
    for (std::int64_t width = 4; width <= 256; width *= 2) {
      if (width <= 2 * n_) lanes_of(width, {Order{{OrderItem{}}}}, 0);
    }
  }
  /// Of terms 0, 1, … h, h + W, … with W > 1: h.
  static std::size_t head_of(const std::vector<std::int64_t>& terms) {
    std::size_t head = 0;
    while (head + 1 < terms.size() && terms[head + 1] == terms[head] + 1) ++head;
    return head;
  }
  void lanes_of(std::int64_t count, const std::vector<Order>& inner, std::int64_t head) {
    for (std::int64_t accumulators = 1; accumulators <= std::min<std::int64_t>(count, 64);
         ++accumulators) {
      if (count % accumulators != 0) continue;
      OrderItem item = item_of(OrderKind::lanes, count / accumulators);
      item.accumulators = accumulators;
      item.head = head;
      for (const LaneTail tail :
           {LaneTail::masked, LaneTail::scalar, LaneTail::scalar_first, LaneTail::first_lane}) {
        item.tail = tail;
        item.multiple = 1;
        if (tail == LaneTail::masked || (n_ - head) % item.size != 0) joined_lanes(item, inner);
        // A body of whole pairs of vectors.
        item.multiple = 2 * item.size;
        if (tail != LaneTail::masked && (n_ - head) % item.multiple >= item.size) {
          joined_lanes(item, inner);
        }
      }
    }
  }
  void joined_lanes(OrderItem item, const std::vector<Order>& inner) {
    for (const LaneJoin join :
         {LaneJoin::halving, LaneJoin::butterfly, LaneJoin::pairwise, LaneJoin::sequential}) {
      item.join = join;
      for (const Order& order : inner) {
        const bool plain = order.items.size() == 1 && order.items.front() == OrderItem{};
        if (plain || !takes_nothing_inside(item)) offer(inside(item, order));
      }
    }
  }

  /// One accumulator that takes the terms in any order whatever.
  void permuted() {
    if (index(n_) > max_permutation_length) return;
    std::vector<std::int64_t> backwards;
    const Node* node = &tree_.root();
    while (node->term < 0) {
      if (node->children.size() != 2) return;
      const Node& first = tree_.nodes()[index(node->children[0])];
      const Node& second = tree_.nodes()[index(node->children[1])];
      if (second.term < 0 && first.term < 0) return;
      // Of two single terms the first one starts the sum.
      const bool takes_second = second.term >= 0;
      backwards.push_back(takes_second ? second.term : first.term);
      node = takes_second ? &first : &second;
    }
    OrderItem item = item_of(OrderKind::permutation);
    item.permutation = {node->term};
    item.permutation.insert(item.permutation.end(), backwards.rbegin(), backwards.rend());
    offer({{item}});
    // Of the first two terms either may start the sum.
    if (item.permutation.size() > 1) std::swap(item.permutation[0], item.permutation[1]);
    offer({{item}});
  }

  const AdditionTree& tree_;
  std::string text_;
  std::int64_t n_;
  const Format& input_;
  bool nested_;
  std::size_t most_;
  int depth_;
  std::vector<Order> found_;
};

}  // namespace

std::vector<Order> fit_orders(const AdditionTree& tree, const softfloat::Format& input, bool nested,
                              std::size_t most) {
  return Fit(tree, input, nested, most, 0).orders();
}

std::vector<Order> with_roundings(const Order& order, const softfloat::Format& format) {
  std::vector<Order> orders = {order};
  if (order.items.empty()) return orders;
  const OrderKind outer = order.items.front().kind;
  if (outer != OrderKind::blocks && outer != OrderKind::split) return orders;
  for (const int which : {1, 2, 3}) {
    Order rounded = order;
    if ((which & 1) != 0) rounded.items.front().partials = format;
    if ((which & 2) != 0) rounded.items.front().running = format;
    orders.push_back(std::move(rounded));
  }
  return orders;
}

}  // namespace kvsim::gpu
