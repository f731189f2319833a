// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/order.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"
#include "softfloat/rounding.h"

namespace kvsim {

/// How the products of a dot product are rounded. Below, acc is a partial sum in the accumulator
/// format and p = a × b the exact product of one term.
enum class Product : std::uint8_t {
  /// p is rounded to the accumulator format, then added: two roundings.
  rounded,
  /// An accumulator takes its next term by one fused multiply-add, with one rounding; its first
  /// term
  /// is fma(a, b, +0). Accumulators are joined by plain additions.
  fused,
  /// p stays exact until an addition, which is then rounded once: the first two products of a sum
  /// give round(p0 + p1), later ones round(acc + p) as in `fused`. A single product that no
  /// addition follows is rounded at the end. Differs from `fused` only where a sum starts.
  exact,
};

/// "rounded", "fused" or "exact".
std::string_view to_string(Product product);

/// The product rule of that name; an error names what was given and what is accepted.
Result<Product> parse_product(std::string_view text);

/// The matrix unit of the order's `mma` item, which is its last one; nullopt where it has none.
std::optional<MatrixUnit> unit_of(const Order& order);

/// Whether products of `input` numbers can be summed by this order with this accumulator: an `mma`
/// unit must read `input`, and the accumulator must hold every number of the unit's output and of
/// the formats of `partials` and `running`. Holds true, or says which item does not fit.
Result<bool> check_formats(const Order& order, const softfloat::Format& input,
                           const softfloat::Format& accumulator);

/// Σ a[i] × b[i] in the given order, on softfloat: the reference for every other evaluator.
///
/// a and b are codes of `input`, of equal length; the result is a code of `accumulator` with the
/// flags of every operation on the way. No terms give +0. An `exact` item sums exact products and
/// rounds once, and an `mma` item computes what its unit does without raising flags, whatever
/// `product` and `mode` say. `mode` holds for every other rounding; under stochastic rounding all
/// of them use the same random bits. Requires check_length(order, a.size()) and
/// check_formats(order, input, accumulator).
softfloat::Rounded sum_products(const Order& order, Product product, const softfloat::Format& input,
                                const softfloat::Format& accumulator,
                                std::span<const softfloat::Bits> a,
                                std::span<const softfloat::Bits> b,
                                const softfloat::Mode& mode = {});

}  // namespace kvsim
