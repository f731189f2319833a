// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>

#include "sim/order.h"
#include "sim/order_walk.h"
#include "softfloat/formats.h"

namespace kvsim {

/// Draws the tree that walk() describes: terms by number, +0 as z.
struct DrawOps {
  using Value = std::string;

  Value zero() const { return "z"; }
  Value first(std::int64_t i) const { return std::to_string(i); }
  Value add_term(const Value& total, std::int64_t i) const {
    return "(" + total + "+" + std::to_string(i) + ")";
  }
  Value add(const Value& left, const Value& right) const { return "(" + left + "+" + right + ")"; }
  Value exact(const OrderRange& range, bool from_zero) const {
    std::string terms = from_zero ? "z" : "";
    for (std::int64_t k = 0; k < range.count; ++k) {
      terms += (terms.empty() ? "" : ",") + std::to_string(range.at(k));
    }
    return "exact(" + terms + ")";
  }
  Value unit(const OrderRange& range, const OrderItem&) const {
    std::string terms;
    for (std::int64_t k = 0; k < range.count; ++k) {
      terms += (terms.empty() ? "" : ",") + std::to_string(range.at(k));
    }
    return "mma(" + terms + ")";
  }
  Value round_to(const Value& total, const softfloat::Format& format) const {
    return std::string(softfloat::format_name(format)) + "(" + total + ")";
  }
};

/// The tree of an order, or the error.
inline std::string draw(const std::string& text, std::int64_t n) {
  const Result<Order> order = parse_order(text);
  if (!order) return order.error().message;
  const Result<bool> fits = check_length(*order, n);
  if (!fits) return fits.error().message;
  DrawOps ops;
  return walk(*order, n, ops);
}

}  // namespace kvsim
