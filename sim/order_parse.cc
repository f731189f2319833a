// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/order.h"
#include "sim/order_names.h"
#include "sim/order_scanner.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"

namespace kvsim {
namespace {

constexpr std::array<std::string_view, 1> init_names = {"zero"};
constexpr std::array<std::string_view, 1> plain_keys = {"init"};
constexpr std::array<std::string_view, 5> lane_keys = {"join", "tail", "multiple", "head", "init"};
constexpr std::array<std::string_view, 4> block_keys = {"merge", "partials", "running", "init"};
constexpr std::array<std::string_view, 5> split_keys = {"multiple", "merge", "partials", "running",
                                                        "init"};

/// The named arguments that an item takes.
std::span<const std::string_view> keys_of(OrderKind kind) {
  switch (kind) {
    case OrderKind::lanes:
      return lane_keys;
    case OrderKind::blocks:
      return block_keys;
    case OrderKind::split:
      return split_keys;
    case OrderKind::matrix_unit:
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      return {};
    default:
      break;
  }
  return plain_keys;
}

/// How many numbers without a name an item takes.
std::size_t minimum_numbers(OrderKind kind) {
  switch (kind) {
    case OrderKind::permutation:
    case OrderKind::lanes:
    case OrderKind::blocks:
    case OrderKind::split:
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      return 1;
    default:
      break;
  }
  return 0;
}
std::size_t maximum_numbers(OrderKind kind) {
  if (kind == OrderKind::permutation) return max_permutation_length + 1;  // one more for its error
  if (kind == OrderKind::lanes || kind == OrderKind::torch_cascade) return 2;
  return minimum_numbers(kind);
}

std::string one_to_max(std::string_view what) {
  return fmt::format("{}, 1 to {}", what, max_order_size);
}

/// What has to follow the '(' of an item.
std::string first_argument(OrderKind kind) {
  switch (kind) {
    case OrderKind::permutation:
      return "the numbers 0 to n-1 in any order, as in perm(3,0,2,1)";
    case OrderKind::lanes:
    case OrderKind::torch_cascade:
    case OrderKind::torch_dot:
      return one_to_max("the number of lanes");
    case OrderKind::blocks:
      return one_to_max("the terms of a block");
    case OrderKind::matrix_unit:
      return "a matrix unit, as in mma(h100.f16.f32)";
    default:
      break;
  }
  return one_to_max("the number of parts");
}

/// A recursive-descent parser without recursion: items one after the other, arguments one after the
/// other. Each step returns false after the scanner has stored the one error.
class Parser {
 public:
  explicit Parser(std::string_view text) : scan_(text) {}

  Result<Order> parse() {
    Order order;
    do {
      scan_.skip_blanks();
      if (order.items.size() == max_order_items) {
        scan_.fail(fmt::format("at most {} items", max_order_items));
        return scan_.error();
      }
      OrderItem item;
      if (!parse_item(item)) return scan_.error();
      order.items.push_back(std::move(item));
      scan_.skip_blanks();
      if (scan_.at('/') && takes_nothing_inside(order.items.back())) {
        const OrderItem& last = order.items.back();
        scan_.fail(fmt::format("the end, because {}{} takes nothing inside",
                               order_names::name(last.kind),
                               last.head > 0                       ? " with a head"
                               : last.tail == LaneTail::first_lane ? " with tail=first-lane"
                                                                   : ""));
        return scan_.error();
      }
    } while (scan_.take('/'));
    if (!scan_.at_end()) {
      const bool ends = takes_nothing_inside(order.items.back());
      const std::string_view open = closed_ ? "" : ends ? "'(' or " : "'(', ";
      scan_.fail(fmt::format("{}{}the end", open, ends ? "" : "'/' or "));
      return scan_.error();
    }
    // A plain sequential inside another item is what that item does anyway.
    if (order.items.size() > 1 && order.items.back() == OrderItem{}) order.items.pop_back();
    return order;
  }

 private:
  bool parse_item(OrderItem& item) {
    std::size_t kind = 0;
    if (!scan_.take_name(order_names::kinds, kind)) return false;
    item.kind = static_cast<OrderKind>(kind);
    scan_.skip_blanks();
    closed_ = scan_.take('(');
    if (closed_) {
      return item.kind == OrderKind::matrix_unit ? parse_unit(item) : parse_arguments(item);
    }
    // `blocks` alone names no number; a parsed argument list always has it.
    if (minimum_numbers(item.kind) == 0 && item.kind != OrderKind::matrix_unit) return true;
    return scan_.fail(fmt::format("'(' and {}", first_argument(item.kind)));
  }

  /// A unit's name, perhaps with options in parentheses of its own, and the closing parenthesis.
  bool parse_unit(OrderItem& item) {
    scan_.skip_blanks();
    const std::size_t start = scan_.position();
    const std::string_view text = scan_.take_list();
    if (text.empty()) return scan_.fail_at(start, first_argument(item.kind));
    const Result<MatrixUnit> unit = parse_matrix_unit(text);
    if (!unit) return scan_.fail_with(start, unit.error().message);
    if (unit->scale_block > 0) {
      return scan_.fail_with(start, fmt::format("unit {} needs block scales, which an order does "
                                                "not have; accepted: a unit without them",
                                                unit->name));
    }
    item.unit = to_string(*unit);
    if (scan_.take(')')) return true;
    return scan_.fail("')'");
  }

  /// Everything between the parentheses, the closing one included.
  bool parse_arguments(OrderItem& item) {
    numbers_ = 0;
    seen_ = {};
    bool named = false;
    scan_.skip_blanks();
    if (scan_.at(')')) {
      if (minimum_numbers(item.kind) > 0) return scan_.fail(first_argument(item.kind));
      return scan_.take(')');
    }
    const bool has_keys = !keys_of(item.kind).empty();
    const bool has_list = has_keys || maximum_numbers(item.kind) > 1;
    do {
      scan_.skip_blanks();
      if (!named && scan_.at_digit() && numbers_ < maximum_numbers(item.kind)) {
        if (!parse_positional(item)) return false;
      } else if (numbers_ < minimum_numbers(item.kind)) {
        return scan_.fail(first_argument(item.kind));
      } else if (!has_keys) {
        return scan_.fail("')'");
      } else {
        named = true;
        if (!parse_named(item)) return false;
      }
      scan_.skip_blanks();
    } while (has_list && scan_.take(','));
    if (scan_.at(')') && item.kind == OrderKind::lanes && item.multiple != 1 &&
        item.tail == LaneTail::masked) {
      return scan_.fail(
          "',tail=scalar', ',tail=scalar-first' or ',tail=first-lane' beside multiple");
    }
    if (scan_.take(')')) return item.kind != OrderKind::permutation || check_permutation(item);
    return scan_.fail(has_list ? "',' or ')'" : "')'");
  }

  /// A number from 1 to max_order_size.
  bool parse_size(std::string_view what, std::int64_t& size) {
    const std::size_t start = scan_.position();
    const std::optional<std::int64_t> number = scan_.take_number();
    if (!number || *number < 1 || *number > max_order_size) {
      return scan_.fail_at(start, std::string(what));
    }
    size = *number;
    return true;
  }

  bool parse_positional(OrderItem& item) {
    if (item.kind == OrderKind::permutation) {
      if (!parse_entry(item)) return false;
    } else if (numbers_ == 0) {
      if (!parse_size(first_argument(item.kind), item.size)) return false;
    } else if (item.kind == OrderKind::torch_cascade) {
      if (!parse_pairing(item)) return false;
    } else if (!parse_size(one_to_max("the number of accumulators"), item.accumulators)) {
      return false;
    }
    ++numbers_;
    return true;
  }

  /// The second number of torch-cascade.
  bool parse_pairing(OrderItem& item) {
    const std::size_t start = scan_.position();
    const std::optional<std::int64_t> number = scan_.take_number();
    if (!number || (*number != 1 && *number != 2)) {
      return scan_.fail_at(start, "1, or 2 for 16-bit numbers, which are added in pairs");
    }
    item.accumulators = *number;
    return true;
  }

  bool parse_entry(OrderItem& item) {
    const std::size_t start = scan_.position();
    const std::optional<std::int64_t> number = scan_.take_number();
    const auto limit = static_cast<std::int64_t>(max_permutation_length);
    if (!number || *number >= limit) {
      return scan_.fail_at(start, fmt::format("a number from 0 to {}", limit - 1));
    }
    if (numbers_ == max_permutation_length) {
      return scan_.fail_at(start,
                           fmt::format("at most {} entries of perm", max_permutation_length));
    }
    entry_positions_.resize(numbers_);
    entry_positions_.push_back(start);
    item.permutation.push_back(*number);
    return true;
  }

  bool parse_named(OrderItem& item) {
    const std::span<const std::string_view> keys = keys_of(item.kind);
    const std::size_t start = scan_.position();
    std::size_t key = 0;
    if (!scan_.take_name(keys, key)) return false;
    if (std::exchange(seen_[key], true)) {
      return scan_.fail_at(start, fmt::format("{} only once in an item", keys[key]));
    }
    scan_.skip_blanks();
    if (!scan_.take('=')) return scan_.fail(fmt::format("'=' after {}", keys[key]));
    scan_.skip_blanks();
    return parse_value(item, keys[key]);
  }

  bool parse_value(OrderItem& item, std::string_view key) {
    std::size_t choice = 0;
    if (key == "join") {
      if (!scan_.take_name(order_names::joins, choice)) return false;
      item.join = static_cast<LaneJoin>(choice);
    } else if (key == "tail") {
      if (!scan_.take_name(order_names::tails, choice)) return false;
      item.tail = static_cast<LaneTail>(choice);
    } else if (key == "merge") {
      if (!scan_.take_name(order_names::merges, choice)) return false;
      item.merge = static_cast<MergeOrder>(choice);
    } else if (key == "multiple") {
      return parse_size(
          one_to_max(item.kind == OrderKind::lanes ? "the elements whose multiples go to lanes"
                                                   : "the terms that a part is a multiple of"),
          item.multiple);
    } else if (key == "head") {
      return parse_size(one_to_max("the first terms, for lane 0"), item.head);
    } else if (key == "partials") {
      return parse_format(item.partials);
    } else if (key == "running") {
      return parse_format(item.running);
    } else {
      if (!scan_.take_name(init_names, choice)) return false;
      item.init_zero = true;
    }
    return true;
  }

  bool parse_format(std::optional<softfloat::Format>& format) {
    const std::size_t start = scan_.position();
    const std::string_view word = scan_.take_word();
    const softfloat::NamedFormat* row = softfloat::find_format(word);
    if (row != nullptr && row->format.has_sign && row->format.has_zero()) {
      format = row->format;
      return true;
    }
    const std::string_view near = softfloat::nearest_format_name(word);
    return scan_.fail_at(start, fmt::format("a format with a sign and a zero{}",
                                            row != nullptr || near.empty()
                                                ? ", as binary16 or bfloat16"
                                                : fmt::format(" (did you mean {}?)", near)));
  }

  bool check_permutation(const OrderItem& item) {
    const std::size_t length = item.permutation.size();
    std::vector<bool> used(length, false);
    for (std::size_t i = 0; i < length; ++i) {
      const auto entry = static_cast<std::size_t>(item.permutation[i]);
      if (entry >= length || used[entry]) {
        return scan_.fail_at(entry_positions_[i],
                             fmt::format("each of 0 to {} once, for a perm of {} entr{}",
                                         length - 1, length, length == 1 ? "y" : "ies"));
      }
      used[entry] = true;
    }
    return true;
  }

  OrderScanner scan_;
  std::size_t numbers_ = 0;                   // arguments without a name of the current item
  std::array<bool, 5> seen_ = {};             // named arguments of the current item
  std::vector<std::size_t> entry_positions_;  // where each entry of the current perm stands
  bool closed_ = false;                       // the current item has its parentheses
};

}  // namespace

Result<Order> parse_order(std::string_view text) {
  if (text.size() > max_order_text) {
    return Error{ErrorKind::usage, fmt::format("order of {} bytes; accepted: at most {}",
                                               text.size(), max_order_text)};
  }
  return Parser(text).parse();
}

}  // namespace kvsim
