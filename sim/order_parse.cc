// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/order.h"
#include "sim/order_names.h"
#include "softfloat/result.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

constexpr std::array<std::string_view, 1> init_names = {"zero"};
constexpr std::array<std::string_view, 1> plain_keys = {"init"};
constexpr std::array<std::string_view, 3> lane_keys = {"join", "tail", "init"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool takes_nothing_inside(OrderKind kind) {
  return kind == OrderKind::sequential || kind == OrderKind::exact || kind == OrderKind::pairwise ||
         kind == OrderKind::halving;
}

/// A recursive-descent parser without recursion: items one after the other, arguments one after the
/// other. Each step returns false after it has stored the one error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Order> parse() {
    if (text_.size() > max_order_text) {
      return Error{ErrorKind::usage, fmt::format("order of {} bytes; accepted: at most {}",
                                                 text_.size(), max_order_text)};
    }
    Order order;
    do {
      skip_blanks();
      if (order.items.size() == max_order_items) {
        fail(fmt::format("at most {} items", max_order_items));
        return error_;
      }
      OrderItem item;
      if (!parse_item(item)) return error_;
      order.items.push_back(std::move(item));
      skip_blanks();
      if (at('/') && takes_nothing_inside(order.items.back().kind)) {
        fail(fmt::format("the end, because {} takes nothing inside",
                         order_names::name(order.items.back().kind)));
        return error_;
      }
    } while (take('/'));
    if (position_ < text_.size()) {
      const OrderItem& last = order.items.back();
      const bool ends = takes_nothing_inside(last.kind);
      const std::string_view open = closed_ ? "" : ends ? "'(' or " : "'(', ";
      fail(fmt::format("{}{}the end", open, ends ? "" : "'/' or "));
      return error_;
    }
    // A plain sequential inside another item is what that item does anyway.
    if (order.items.size() > 1 && order.items.back() == OrderItem{}) order.items.pop_back();
    return order;
  }

 private:
  bool parse_item(OrderItem& item) {
    std::size_t kind = 0;
    if (!parse_name(order_names::kinds, kind)) return false;
    item.kind = static_cast<OrderKind>(kind);
    skip_blanks();
    closed_ = at('(');
    if (closed_) {
      ++position_;
      if (!parse_arguments(item)) return false;
    }
    return has_numbers(item);
  }

  /// Everything between the parentheses, the closing one included.
  bool parse_arguments(OrderItem& item) {
    numbers_ = 0;
    seen_ = {};
    bool named = false;
    skip_blanks();
    if (at(')')) {
      if (minimum_numbers(item.kind) > 0) return fail(first_number(item.kind));
      ++position_;
      return true;
    }
    do {
      skip_blanks();
      if (!named && position_ < text_.size() && is_digit(text_[position_]) &&
          numbers_ < maximum_numbers(item.kind)) {
        if (!parse_positional(item)) return false;
      } else if (numbers_ < minimum_numbers(item.kind)) {
        return fail(first_number(item.kind));
      } else {
        named = true;
        if (!parse_named(item)) return false;
      }
      skip_blanks();
    } while (take(','));
    if (take(')')) return item.kind != OrderKind::permutation || check_permutation(item);
    return fail("',' or ')'");
  }

  static std::size_t minimum_numbers(OrderKind kind) {
    return kind == OrderKind::permutation || kind == OrderKind::lanes ||
                   kind == OrderKind::blocks || kind == OrderKind::split
               ? 1
               : 0;
  }
  static std::size_t maximum_numbers(OrderKind kind) {
    if (kind == OrderKind::permutation)
      return max_permutation_length + 1;  // one more for its error
    if (kind == OrderKind::lanes) return 2;
    return minimum_numbers(kind);
  }
  static std::string first_number(OrderKind kind) {
    switch (kind) {
      case OrderKind::permutation:
        return "the numbers 0 to n-1 in any order, as in perm(3,0,2,1)";
      case OrderKind::lanes:
        return fmt::format("the number of lanes, 1 to {}", max_order_size);
      case OrderKind::blocks:
        return fmt::format("the terms of a block, 1 to {}", max_order_size);
      default:
        break;
    }
    return fmt::format("the number of parts, 1 to {}", max_order_size);
  }

  bool parse_positional(OrderItem& item) {
    const std::size_t start = position_;
    while (position_ < text_.size() && is_digit(text_[position_])) ++position_;
    std::int64_t number = 0;
    const char* const begin = text_.data() + start;
    const char* const end = text_.data() + position_;
    const bool read = std::from_chars(begin, end, number).ec == std::errc{};
    const bool glued = position_ < text_.size() && is_word(text_[position_]);
    if (item.kind == OrderKind::permutation) {
      const auto limit = static_cast<std::int64_t>(max_permutation_length);
      if (!read || glued || number >= limit) {
        return fail_at(start, fmt::format("a number from 0 to {}", limit - 1));
      }
      if (numbers_ == max_permutation_length) {
        return fail_at(start, fmt::format("at most {} entries of perm", max_permutation_length));
      }
      entry_positions_.resize(numbers_);
      entry_positions_.push_back(start);
      item.permutation.push_back(number);
    } else {
      if (!read || glued || number < 1 || number > max_order_size) {
        return fail_at(start, numbers_ == 0 ? first_number(item.kind)
                                            : fmt::format("the number of accumulators, 1 to {}",
                                                          max_order_size));
      }
      (numbers_ == 0 ? item.size : item.accumulators) = number;
    }
    ++numbers_;
    return true;
  }

  bool parse_named(OrderItem& item) {
    const bool lanes = item.kind == OrderKind::lanes;
    const std::span<const std::string_view> keys =
        lanes ? std::span<const std::string_view>(lane_keys) : plain_keys;
    const std::size_t start = position_;
    std::size_t key = 0;
    if (!parse_name(keys, key)) return false;
    if (std::exchange(seen_[key], true)) {
      return fail_at(start, fmt::format("{} only once in an item", keys[key]));
    }
    skip_blanks();
    if (!take('=')) return fail(fmt::format("'=' after {}", keys[key]));
    skip_blanks();
    std::size_t choice = 0;
    if (keys[key] == "join") {
      if (!parse_name(order_names::joins, choice)) return false;
      item.join = static_cast<LaneJoin>(choice);
    } else if (keys[key] == "tail") {
      if (!parse_name(order_names::tails, choice)) return false;
      item.tail = static_cast<LaneTail>(choice);
    } else {
      if (!parse_name(init_names, choice)) return false;
      item.init_zero = true;
    }
    return true;
  }

  bool check_permutation(const OrderItem& item) {
    const std::size_t length = item.permutation.size();
    std::vector<bool> used(length, false);
    for (std::size_t i = 0; i < length; ++i) {
      const auto entry = static_cast<std::size_t>(item.permutation[i]);
      if (entry >= length || used[entry]) {
        return fail_at(entry_positions_[i],
                       fmt::format("each of 0 to {} once, for a perm of {} entr{}", length - 1,
                                   length, length == 1 ? "y" : "ies"));
      }
      used[entry] = true;
    }
    return true;
  }

  /// `blocks` alone names no number; a parsed argument list always has it.
  bool has_numbers(const OrderItem& item) {
    if (closed_ || minimum_numbers(item.kind) == 0) return true;
    return fail(fmt::format("'(' and {}", first_number(item.kind)));
  }

  /// One of `names`, as its index.
  bool parse_name(std::span<const std::string_view> names, std::size_t& index) {
    const std::size_t start = position_;
    const std::string_view word = word_at(start);
    for (index = 0; index < names.size(); ++index) {
      if (names[index] == word) {
        position_ += word.size();
        return true;
      }
    }
    std::string accepted = fmt::format("{}", fmt::join(names, ", "));
    const std::string_view near = softfloat::nearest(word, names);
    if (!near.empty()) accepted += fmt::format(" (did you mean {}?)", near);
    return fail_at(start, accepted);
  }

  std::string_view word_at(std::size_t start) const {
    std::size_t end = start;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(start, end - start);
  }

  void skip_blanks() {
    while (position_ < text_.size() && is_blank(text_[position_])) ++position_;
  }
  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }
  bool take(char c) {
    if (!at(c)) return false;
    ++position_;
    return true;
  }

  /// What stands at a position, as an error message shows it.
  std::string found(std::size_t start) const {
    if (start >= text_.size()) return "the end";
    std::string_view word = word_at(start);
    if (word.empty()) word = text_.substr(start, 1);
    return order_names::quoted(word);
  }

  bool fail(const std::string& accepted) { return fail_at(position_, accepted); }
  bool fail_at(std::size_t start, const std::string& accepted) {
    error_ = Error{ErrorKind::usage, fmt::format("order position {}: found {}; accepted: {}",
                                                 start + 1, found(start), accepted)};
    return false;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t numbers_ = 0;                   // positional arguments of the current item
  std::array<bool, 3> seen_ = {};             // named arguments of the current item
  std::vector<std::size_t> entry_positions_;  // where each entry of the current perm stands
  bool closed_ = false;                       // the current item has its parentheses
  Error error_;                               // set by the step that returned false
};

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

Result<Order> parse_order(std::string_view text) { return Parser(text).parse(); }

}  // namespace kvsim
