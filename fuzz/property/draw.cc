// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/draw.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/units/matrix_unit.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;
using softfloat::Format;

Bits code_of(const Format& format, double value) {
  return softfloat::convert(format, softfloat::binary64, softfloat::from_double(value)).bits;
}

/// A matrix unit without block scales that reads this format and whose results the accumulator
/// holds; empty where none is found in a few tries.
std::string draw_unit(Random& random, const OrderChoice& choice) {
  for (int i = 0; i < 24; ++i) {
    const MatrixUnit& unit = one_of(random, matrix_units());
    if (unit.scale_block > 0 || unit.operand != choice.input) continue;
    const Order order{{{.kind = OrderKind::matrix_unit, .unit = std::string(unit.name)}}};
    if (check_formats(order, choice.input, choice.accumulator)) return std::string(unit.name);
  }
  return {};
}

OrderItem draw_innermost(Random& random, const OrderChoice& choice) {
  constexpr auto kinds = std::to_array<OrderKind>(
      {OrderKind::sequential, OrderKind::exact, OrderKind::pairwise, OrderKind::halving,
       OrderKind::numpy_pairwise, OrderKind::torch_cascade, OrderKind::torch_dot});
  if (choice.units && random.once_in(3)) {
    std::string unit = draw_unit(random, choice);
    if (!unit.empty()) return {.kind = OrderKind::matrix_unit, .unit = std::move(unit)};
  }
  OrderItem item{.kind = one_of(random, std::span<const OrderKind>(kinds))};
  const bool torch = item.kind == OrderKind::torch_cascade || item.kind == OrderKind::torch_dot;
  if (torch) item.size = std::int64_t{1} << random.below(4);
  if (item.kind == OrderKind::torch_cascade) item.accumulators = random.between(1, 2);
  if (!torch) item.init_zero = random.once_in(4);
  return item;
}

OrderItem draw_outer(Random& random, const OrderChoice& choice) {
  constexpr auto kinds = std::to_array<OrderKind>(
      {OrderKind::reverse, OrderKind::lanes, OrderKind::blocks, OrderKind::split});
  OrderItem item{.kind = one_of(random, std::span<const OrderKind>(kinds))};
  item.init_zero = random.once_in(4);
  if (item.kind == OrderKind::reverse) return item;
  item.size = random.between(1, 9);
  if (item.kind == OrderKind::lanes) {
    item.accumulators = random.between(1, 3);
    item.join = static_cast<LaneJoin>(random.below(4));
    item.tail = static_cast<LaneTail>(random.below(4));
    if (item.tail != LaneTail::masked && random.once_in(3)) item.multiple = random.between(1, 12);
    if (random.once_in(4)) item.head = random.between(1, 5);
    return item;
  }
  item.merge = static_cast<MergeOrder>(random.below(5));
  if (item.kind == OrderKind::split && random.once_in(3)) item.multiple = random.between(1, 8);
  if (!choice.rounded) return item;
  const Format& narrow =
      choice.accumulator == softfloat::binary16 ? softfloat::binary16 : softfloat::bfloat16;
  if (random.once_in(3)) item.partials = narrow;
  if (random.once_in(3)) item.running = narrow;
  return item;
}

}  // namespace

Bits draw_code(Random& random, const Format& format) {
  const Bits sign = format.has_sign && random.once_in(2) ? format.sign_bit() : Bits{0};
  if (!random.once_in(3)) return random.bits() & format.code_mask();
  const Bits one = static_cast<Bits>(format.bias) << format.trailing_bits();
  const Bits smallest_normal = Bits{1} << format.trailing_bits();
  const std::array<Bits, 9> edges{0,
                                  1,
                                  smallest_normal - 1,
                                  smallest_normal,
                                  format.max_finite(),
                                  format.max_finite() - 1,
                                  format.magnitude_mask(),
                                  one,
                                  one + 1};
  return sign | one_of(random, std::span<const Bits>(edges));
}

Bits draw_finite_code(Random& random, const Format& format) {
  for (;;) {
    const Bits code = draw_code(random, format);
    if (softfloat::is_finite(format, code)) return code;
  }
}

Bits draw_number(Random& random, const Format& format, const Exponents& exponents) {
  const auto exponent = random.between(exponents.lowest, exponents.highest);
  const Bits sign = random.once_in(2) ? format.sign_bit() : Bits{0};
  return sign | (static_cast<Bits>(exponent + format.bias) << format.trailing_bits()) |
         (random.bits() & format.trailing_mask());
}

Factors draw_factors(Random& random, const Format& format, std::int64_t terms,
                     const Exponents& exponents) {
  Factors factors{format, {}, {}};
  factors.a.reserve(static_cast<std::size_t>(terms));
  factors.b.reserve(static_cast<std::size_t>(terms));
  for (std::int64_t k = 0; k < terms; ++k) {
    factors.a.push_back(draw_number(random, format, exponents));
    factors.b.push_back(draw_number(random, format, exponents));
  }
  return factors;
}

Factors draw_integers(Random& random, const Format& format, std::int64_t terms,
                      std::int64_t largest) {
  Factors factors{format, {}, {}};
  factors.a.reserve(static_cast<std::size_t>(terms));
  factors.b.reserve(static_cast<std::size_t>(terms));
  for (std::int64_t k = 0; k < terms; ++k) {
    factors.a.push_back(code_of(format, static_cast<double>(random.between(-largest, largest))));
    factors.b.push_back(code_of(format, static_cast<double>(random.between(-largest, largest))));
  }
  return factors;
}

std::string code_text(const Format& format, Bits code) {
  return softfloat::to_hex_float(format, code);
}

std::string to_text(const Factors& factors) {
  constexpr std::size_t most = 16;
  const auto list = [&](std::span<const Bits> codes) {
    std::string text;
    for (const Bits code : codes.first(std::min(most, codes.size()))) {
      text += ' ' + code_text(factors.format, code);
    }
    return text + (codes.size() > most ? " …" : "");
  };
  return fmt::format("{} terms of {}, a{}, b{}", factors.a.size(),
                     softfloat::format_name(factors.format), list(factors.a), list(factors.b));
}

std::vector<float> floats_of(const Format& format, std::span<const Bits> codes) {
  std::vector<float> result;
  result.reserve(codes.size());
  for (const Bits code : codes) result.push_back(softfloat::to_float(format, code));
  return result;
}

Order draw_order(Random& random, std::int64_t n, const OrderChoice& choice) {
  for (;;) {
    Order order;
    for (std::int64_t depth = random.below(3); depth > 0; --depth) {
      order.items.push_back(draw_outer(random, choice));
      if (takes_nothing_inside(order.items.back())) break;
    }
    if (order.items.empty() || !takes_nothing_inside(order.items.back())) {
      order.items.push_back(draw_innermost(random, choice));
    }
    // A plain sequential inside another item is left out of a canonical order.
    if (order.items.size() > 1 && order.items.back() == OrderItem{}) order.items.pop_back();
    if (check_length(order, n) && check_formats(order, choice.input, choice.accumulator)) {
      return order;
    }
  }
}

Product draw_product(Random& random) { return static_cast<Product>(random.below(3)); }

std::vector<std::size_t> draw_permutation(Random& random, std::size_t n) {
  std::vector<std::size_t> result(n);
  std::iota(result.begin(), result.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) {
    std::swap(result[i - 1],
              result[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  return result;
}

}  // namespace kvsim::fuzz
