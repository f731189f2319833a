// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/order_names.h"
#include "sim/order_walk.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"
#include "softfloat/mutants.h"
#include "softfloat/result.h"

namespace kvsim {
namespace {

/// Additions between a term and the sum of `count` ≥ 1 terms on a matrix unit, from +0.
std::int64_t unit_height(const MatrixUnit& unit, std::int64_t count) {
  const auto rounded_up = [](std::int64_t n, std::int64_t d) { return (n - 1) / d + 1; };
  const std::int64_t length = std::int64_t{unit.fan_in} * unit.blocks;
  // One addition for every instruction after the first where c is added apart.
  const std::int64_t chained =
      unit.addend == Addend::last ? rounded_up(count, length) - 1 : std::int64_t{0};
  if (unit.operation == UnitOperation::fma) {
    const std::int64_t joined = unit.addend == Addend::last ? std::min(count, length) : count;
    const std::int64_t accumulators = std::min<std::int64_t>(unit.accumulators, joined);
    return rounded_up(joined, accumulators) - 1 + accumulators - 1 + chained;
  }
  if (count == 1) return 0;
  const std::int64_t blocks = rounded_up(count, unit.fan_in);
  if (unit.operation == UnitOperation::ftz_add_mul) {  // products in pairs, then to the sum so far
    const auto paired =                                // the rest of a block are zeros
        static_cast<std::uint64_t>(std::min<std::int64_t>(count, unit.fan_in));
    return static_cast<std::int64_t>(std::bit_width(paired - 1)) + blocks - 1;
  }
  return blocks + chained;
}

/// Ops of walk() that computes the height of the tree; see height().
struct HeightOps {
  using Value = std::int64_t;
  static constexpr Value untouched = -1;  // +0, whose addition rounds nothing

  Value zero() const { return untouched; }
  Value first(std::int64_t) const { return 0; }
  Value add_term(Value total, std::int64_t) const { return total + 1; }
  Value add(Value left, Value right) const {
    if (left == untouched) return right;
    return std::max(left, right) + 1;
  }
  Value exact(const OrderRange& range, bool) const { return range.count > 1 ? 1 : 0; }
  Value unit(const OrderRange& range, const OrderItem& item) {
    // Every unit of an order is the same: the item takes nothing inside.
    if (!unit_) unit_ = parse_matrix_unit(item.unit);
    // parse_order() accepts no order whose unit does not exist.
    return *unit_ ? unit_height(**unit_, range.count) : range.count - 1;
  }
  Value round_to(Value total, const softfloat::Format&) const { return total; }

 private:
  std::optional<Result<MatrixUnit>> unit_;
};

/// The lengths of the groups that an item makes of a range of n ≥ 1 terms, for the item inside it.
void add_group_lengths(const OrderItem& item, std::int64_t n, std::set<std::int64_t>& lengths) {
  switch (item.kind) {
    case OrderKind::reverse:
    case OrderKind::permutation:
      lengths.insert(n);
      return;
    case OrderKind::blocks:
    case OrderKind::split: {
      const std::int64_t length = part_length(item, n);
      if (n >= length) lengths.insert(length);
      if (n % length != 0) lengths.insert(n % length);
      return;
    }
    case OrderKind::lanes: {
      const std::int64_t rest = std::max<std::int64_t>(n - item.head, 0);
      const std::int64_t body = rest - lane_tail_length(item, rest);
      const std::int64_t groups = item.size * item.accumulators;
      if (body >= groups) lengths.insert(body / groups);
      if (body % groups != 0) lengths.insert(body / groups + 1);
      return;
    }
    case OrderKind::sequential:
    case OrderKind::exact:
    case OrderKind::pairwise:
    case OrderKind::halving:
    case OrderKind::matrix_unit:
    case OrderKind::numpy_pairwise:
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      return;  // nothing inside
  }
}

}  // namespace

std::string order_names::quoted(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 24)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return fmt::format("'{}{}'", shown, text.size() > 24 ? "..." : "");
}

std::string to_string(const OrderItem& item) {
  std::vector<std::string> arguments;
  switch (item.kind) {
    case OrderKind::permutation:
      for (const std::int64_t entry : item.permutation) arguments.push_back(fmt::to_string(entry));
      break;
    case OrderKind::lanes:
      arguments.push_back(fmt::to_string(item.size));
      arguments.push_back(fmt::to_string(item.accumulators));
      if (item.join != LaneJoin::pairwise) {
        arguments.push_back(fmt::format("join={}", order_names::name(item.join)));
      }
      if (item.tail != LaneTail::masked) {
        arguments.push_back(fmt::format("tail={}", order_names::name(item.tail)));
      }
      if (item.multiple != 1) arguments.push_back(fmt::format("multiple={}", item.multiple));
      if (item.head != 0) arguments.push_back(fmt::format("head={}", item.head));
      break;
    case OrderKind::blocks:
    case OrderKind::split:
      arguments.push_back(fmt::to_string(item.size));
      if (item.multiple != 1 && !mutant_is_on(Mutant::multiple_not_written))
        arguments.push_back(fmt::format("multiple={}", item.multiple));
      if (item.merge != MergeOrder::sequential) {
        arguments.push_back(fmt::format("merge={}", order_names::name(item.merge)));
      }
      if (item.partials) {
        arguments.push_back(fmt::format("partials={}", softfloat::format_name(*item.partials)));
      }
      if (item.running) {
        arguments.push_back(fmt::format("running={}", softfloat::format_name(*item.running)));
      }
      break;
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      arguments.push_back(fmt::to_string(item.size));
      if (item.accumulators != 1) arguments.push_back(fmt::to_string(item.accumulators));
      break;
    case OrderKind::matrix_unit:
      arguments.push_back(item.unit);
      break;
    case OrderKind::sequential:
    case OrderKind::reverse:
    case OrderKind::exact:
    case OrderKind::pairwise:
    case OrderKind::halving:
    case OrderKind::numpy_pairwise:
      break;
  }
  if (item.init_zero) arguments.emplace_back("init=zero");
  if (arguments.empty()) return std::string(order_names::name(item.kind));
  return fmt::format("{}({})", order_names::name(item.kind), fmt::join(arguments, ","));
}

std::string to_string(const Order& order) {
  if (order.items.empty()) return std::string(order_names::name(OrderKind::sequential));
  std::vector<std::string> items;
  items.reserve(order.items.size());
  for (const OrderItem& item : order.items) items.push_back(to_string(item));
  return fmt::format("{}", fmt::join(items, "/"));
}

Result<bool> check_length(const Order& order, std::int64_t n) {
  if (n < 0) return Error{ErrorKind::usage, fmt::format("length {}: accepted: 0 or more", n)};
  std::set<std::int64_t> lengths;
  if (n > 0) lengths.insert(n);
  for (std::size_t i = 0; i < order.items.size(); ++i) {
    const OrderItem& item = order.items[i];
    if (item.kind == OrderKind::permutation) {
      const auto entries = static_cast<std::int64_t>(item.permutation.size());
      for (const std::int64_t length : lengths) {
        if (length == entries) continue;
        return Error{
            ErrorKind::usage,
            fmt::format("order item {} of {} over {} term{}: perm has {} entr{} but meets a "
                        "range of {}; accepted: a perm of exactly the range's length",
                        i + 1, order.items.size(), n, n == 1 ? "" : "s", entries,
                        entries == 1 ? "y" : "ies", length)};
      }
    }
    std::set<std::int64_t> inside;
    for (const std::int64_t length : lengths) add_group_lengths(item, length, inside);
    lengths = std::move(inside);
  }
  return true;
}

std::int64_t height(const Order& order, std::int64_t n) {
  HeightOps ops;
  return std::max<std::int64_t>(walk(order, n, ops), 0);
}

bool rounds_to_accumulator_only(const Order& order) {
  return std::none_of(order.items.begin(), order.items.end(), [](const OrderItem& item) {
    return item.kind == OrderKind::matrix_unit || item.partials || item.running;
  });
}

bool takes_nothing_inside(OrderKind kind) {
  switch (kind) {
    case OrderKind::sequential:
    case OrderKind::exact:
    case OrderKind::pairwise:
    case OrderKind::halving:
    case OrderKind::matrix_unit:
    case OrderKind::numpy_pairwise:
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      return true;
    case OrderKind::reverse:
    case OrderKind::permutation:
    case OrderKind::lanes:
    case OrderKind::blocks:
    case OrderKind::split:
      break;
  }
  return false;
}

bool takes_nothing_inside(const OrderItem& item) {
  return item.head > 0 || item.tail == LaneTail::first_lane || takes_nothing_inside(item.kind);
}

std::int64_t lane_tail_length(const OrderItem& item, std::int64_t n) {
  if (item.tail == LaneTail::masked) return 0;
  return n % (item.multiple == 1 ? item.size : item.multiple);
}

std::int64_t part_length(const OrderItem& item, std::int64_t n) {
  if (item.kind == OrderKind::blocks) return item.size;
  if (mutant_is_on(Mutant::short_parts)) return std::max<std::int64_t>(1, n / item.size);
  const std::int64_t terms = (n - 1) / item.size + 1;
  return ((terms - 1) / item.multiple + 1) * item.multiple;
}

}  // namespace kvsim
