// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "fuzz/targets/input.h"
#include "sim/order.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"

/// Orders and numbers made of an input's bytes.
namespace kvsim::targets {

/// An order of up to three items, of small sizes; nothing where the items do not fit together. The
/// items are printed and parsed, so that what is not canonical becomes so.
inline std::optional<Order> read_order(Input& input) {
  constexpr std::int64_t kinds = 13, joins = 4, tails = 4, merges = 5;
  constexpr std::array<std::optional<softfloat::Format>, 8> formats = {
      std::nullopt, std::nullopt, std::nullopt,        std::nullopt,
      std::nullopt, std::nullopt, softfloat::binary16, softfloat::bfloat16};
  Order order;
  const std::int64_t items = 1 + input.below(3);
  for (std::int64_t i = 0; i < items; ++i) {
    OrderItem item;
    item.kind = static_cast<OrderKind>(input.below(kinds));
    const std::int64_t sizes = input.below(256);
    const std::int64_t details = input.below(256);
    item.init_zero = details % 4 == 1;
    const bool torch = item.kind == OrderKind::torch_cascade || item.kind == OrderKind::torch_dot;
    if (item.kind == OrderKind::lanes) {
      item.accumulators = 1 + sizes / 16 % 4;
      item.join = static_cast<LaneJoin>(details / 4 % joins);
      item.tail = static_cast<LaneTail>(details / 16 % tails);
      if (details >= 192) item.head = 1 + details % 5;
      if (item.tail != LaneTail::masked && details % 3 == 0) item.multiple = 1 + details % 12;
    }
    if (item.kind == OrderKind::blocks || item.kind == OrderKind::split) {
      item.merge = static_cast<MergeOrder>(details / 4 % merges);
      item.partials = formats[static_cast<std::size_t>(details / 32)];
      item.running = formats[static_cast<std::size_t>(sizes / 32)];
      if (item.kind == OrderKind::split && details % 3 == 0) item.multiple = 1 + details % 12;
    }
    if (item.kind == OrderKind::lanes || item.kind == OrderKind::blocks ||
        item.kind == OrderKind::split || torch) {
      item.size = 1 + sizes % 16;
    }
    if (item.kind == OrderKind::torch_cascade) item.accumulators = 1 + details / 4 % 2;
    if (item.kind == OrderKind::permutation) {
      for (std::int64_t k = 0; k <= sizes % 8; ++k) {
        item.permutation.push_back((k + details) % (1 + sizes % 8));
      }
    }
    if (item.kind == OrderKind::matrix_unit) item.unit = to_string(input.one_of(matrix_units()));
    if (torch || item.kind == OrderKind::matrix_unit) item.init_zero = false;
    order.items.push_back(item);
  }
  const Result<Order> parsed = parse_order(to_string(order));
  if (!parsed) {
    check_error(parsed.error());
    return std::nullopt;
  }
  require(to_string(*parsed) == to_string(parse_order(to_string(*parsed)).value()));
  return *parsed;
}

/// How the numbers of one operand are drawn: from a seed, so that a few bytes make many.
struct Drawing {
  std::uint64_t seed = 0;
  /// Exponents lie within so many of that of 1; 0: any code, specials included.
  std::int64_t reach = 0;
};

inline Drawing read_drawing(Input& input) {
  Drawing drawing;
  drawing.reach = input.below(24);
  drawing.seed = input.word(4);
  return drawing;
}

/// Number `i` of a drawing, as a code of the format. One in sixteen is zero or one.
inline softfloat::Bits draw_code(const Drawing& drawing, const softfloat::Format& format,
                                 std::uint64_t i) {
  const std::uint64_t word = mix(drawing.seed * 0x10001U + mix(i));
  softfloat::Bits code = word & format.code_mask();
  if (drawing.reach == 0 || !format.has_zero()) return code;
  const auto reach = static_cast<std::uint64_t>(drawing.reach);
  if (word >> 60U == 0) return word & format.sign_bit();
  const std::int64_t offset =
      static_cast<std::int64_t>((word >> 40U) % (2 * reach)) - static_cast<std::int64_t>(reach);
  const std::int64_t top = (std::int64_t{1} << format.exponent_bits) - 2;
  const std::int64_t field = std::min(std::max(format.bias + offset, std::int64_t{0}), top);
  code &= format.sign_bit() | format.trailing_mask();
  // Short significands cancel and tie.
  if ((word >> 56U) % 2 == 0) code &= ~(format.trailing_mask() >> 2U);
  return code | static_cast<softfloat::Bits>(field) << format.trailing_bits();
}

}  // namespace kvsim::targets
