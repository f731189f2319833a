// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/sum.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "sim/order.h"
#include "sim/order_names.h"
#include "sim/order_walk.h"
#include "sim/sum_ops.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;

constexpr std::array<std::string_view, 3> product_names = {"rounded", "fused", "exact"};

/// Whether everything that `f` can hold, −0, infinities and NaN included, is there in `wide`.
bool holds(const Format& wide, const Format& f) {
  if (wide == f) return true;
  const auto lowest_bit = [](const Format& x) { return x.emin() - x.trailing_bits(); };
  return (wide.has_sign || !f.has_sign) && wide.has_zero() &&
         (wide.has_negative_zero() || !f.has_negative_zero()) && f.precision <= wide.precision &&
         lowest_bit(f) >= lowest_bit(wide) &&
         softfloat::to_double(f, f.max_finite()) <= softfloat::to_double(wide, wide.max_finite()) &&
         (wide.has_infinity() || !f.has_infinity()) && (wide.has_nan() || !f.has_nan());
}

Error not_held(const OrderItem& item, const char* what, const Format& f, const Format& wide) {
  return {
      ErrorKind::usage,
      fmt::format("order item {}: the accumulator {} does not hold every {}, the format of "
                  "{}; accepted: an accumulator that does",
                  to_string(item), softfloat::format_name(wide), softfloat::format_name(f), what)};
}

}  // namespace

std::string_view to_string(Product product) {
  return product_names[static_cast<std::size_t>(product)];
}

Result<Product> parse_product(std::string_view text) {
  for (std::size_t i = 0; i < product_names.size(); ++i) {
    if (product_names[i] == text) return static_cast<Product>(i);
  }
  const std::string_view near = softfloat::nearest(text, product_names);
  return Error{ErrorKind::usage,
               fmt::format("product rule {}; accepted: {}{}", order_names::quoted(text),
                           fmt::join(product_names, ", "),
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

std::optional<MatrixUnit> unit_of(const Order& order) {
  if (order.items.empty() || order.items.back().kind != OrderKind::matrix_unit) return std::nullopt;
  const Result<MatrixUnit> unit = parse_matrix_unit(order.items.back().unit);
  return unit ? std::optional<MatrixUnit>(*unit) : std::nullopt;
}

Result<bool> check_formats(const Order& order, const Format& input, const Format& accumulator) {
  for (const OrderItem& item : order.items) {
    for (const auto& [format, what] :
         {std::pair{item.partials, "partial sums"}, std::pair{item.running, "the running sum"}}) {
      if (format && !holds(accumulator, *format)) {
        return not_held(item, what, *format, accumulator);
      }
    }
    if (item.kind != OrderKind::matrix_unit) continue;
    const Result<MatrixUnit> unit = parse_matrix_unit(item.unit);
    if (!unit) return unit.error();
    if (unit->operand != input) {
      return Error{ErrorKind::usage,
                   fmt::format("order item {}: input format {}; accepted: {}, what the unit reads",
                               to_string(item), softfloat::format_name(input),
                               softfloat::format_name(unit->operand))};
    }
    if (!holds(accumulator, unit->output)) {
      return not_held(item, "the unit's results", unit->output, accumulator);
    }
  }
  return true;
}

Rounded sum_products(const Order& order, Product product, const Format& input,
                     const Format& accumulator, std::span<const Bits> a, std::span<const Bits> b,
                     const Mode& mode) {
  SumOps ops(order, product, input, accumulator, a, b, mode);
  const auto n = static_cast<std::int64_t>(std::min(a.size(), b.size()));
  const SumOps::Value total = walk(order, n, ops);
  return ops.finish(total);
}

}  // namespace kvsim
