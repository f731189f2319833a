// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "fuzz/property/plain_sum.h"
#include "fuzz/property/sum_probe.h"
#include "fuzz/property/wide_number.h"
#include "sim/engine/columns.h"
#include "sim/engine/matrix.h"
#include "sim/sum_tree.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

using softfloat::Bits;
using softfloat::Format;

constexpr auto input_formats =
    std::to_array<Format>({softfloat::binary16, softfloat::bfloat16, softfloat::binary32});
constexpr auto accumulators =
    std::to_array<Format>({softfloat::binary32, softfloat::binary16, softfloat::bfloat16});

/// The exact sum of products, rounded once to the format.
double exact_by_mpfr(const Factors& factors, const Format& to) {
  constexpr mpfr_prec_t bits = 1024;  // products of binary32 reach from 2^-298 to below 2^256
  WideNumber sum(bits);
  for (std::size_t k = 0; k < factors.a.size(); ++k) {
    WideNumber product(bits, softfloat::to_double(factors.format, factors.a[k]));
    mpfr_mul_d(product.get(), product.get(), softfloat::to_double(factors.format, factors.b[k]),
               MPFR_RNDN);
    mpfr_add(sum.get(), sum.get(), product.get(), MPFR_RNDN);
  }
  WideNumber rounded(to.precision);
  const int ternary = mpfr_set(rounded.get(), sum.get(), MPFR_RNDN);
  return in_range_of(to, rounded, ternary, MPFR_RNDN);
}

Violation exact_sums_have_no_order(PropertyInput& input) {
  const Format& format = one_of(input.random, std::span<const Format>(input_formats));
  const Format& to = one_of(input.random, std::span<const Format>(accumulators));
  Factors factors{format, {}, {}};
  for (std::int64_t k = input.random.between(1, 40); k > 0; --k) {
    factors.a.push_back(draw_finite_code(input.random, format));
    factors.b.push_back(draw_finite_code(input.random, format));
  }
  const double expected = exact_by_mpfr(factors, to);
  const Order exact{{{.kind = OrderKind::exact}}};
  for (int i = 0; i < 3; ++i) {
    const Bits code =
        i == 0 ? sum_products(exact, Product::rounded, format, to, factors.a, factors.b).bits
               : softfloat::exact_dot(format, factors.a, factors.b, to).bits;
    // A sum of zeros has their sign, which MPFR's has not.
    if (softfloat::to_double(to, code) != expected) {
      return fmt::format("{}: the exact sum in {} is {}, not {:a}", to_text(factors),
                         softfloat::format_name(to), code_text(to, code), expected);
    }
    const auto moved = draw_permutation(input.random, factors.a.size());
    const Factors before = factors;
    for (std::size_t k = 0; k < moved.size(); ++k) {
      factors.a[k] = before.a[moved[k]];
      factors.b[k] = before.b[moved[k]];
    }
  }
  return std::nullopt;
}

Violation whole_numbers_are_exact(PropertyInput& input) {
  constexpr std::int64_t most_terms = 160;
  constexpr int cases = 4;
  for (int i = 0; i < cases; ++i) {
    const Format& format = one_of(input.random, std::span<const Format>(input_formats));
    const Format& accumulator = one_of(input.random, std::span<const Format>(accumulators));
    const std::int64_t largest = accumulator == softfloat::bfloat16 ? 1 : 2;
    const std::int64_t terms = input.random.between(1, most_terms);
    const Factors factors = draw_integers(input.random, format, terms, largest);
    const Order order =
        draw_order(input.random, terms,
                   {.units = true, .rounded = false, .input = format, .accumulator = accumulator});
    double expected = 0;
    for (std::size_t k = 0; k < factors.a.size(); ++k) {
      expected +=
          softfloat::to_double(format, factors.a[k]) * softfloat::to_double(format, factors.b[k]);
    }
    const Bits code =
        sum_products(order, draw_product(input.random), format, accumulator, factors.a, factors.b)
            .bits;
    if (softfloat::to_double(accumulator, code) == expected) continue;
    return fmt::format("{} in {}: whole numbers add up to {}, not {}; {}", kvsim::to_string(order),
                       softfloat::format_name(accumulator), code_text(accumulator, code), expected,
                       to_text(factors));
  }
  return std::nullopt;
}

Violation orders_are_their_definitions(PropertyInput& input) {
  const Format& single = softfloat::binary32;
  constexpr int cases = 8;
  for (int i = 0; i < cases; ++i) {
    const std::int64_t terms = input.random.between(1, 48);
    Order order;
    do {
      order = draw_order(input.random, terms, {.input = single, .accumulator = single});
    } while (!has_plain_sum(order));
    const Factors factors = draw_factors(input.random, single, terms, {});
    std::vector<float> products;
    products.reserve(factors.a.size());
    for (std::size_t k = 0; k < factors.a.size(); ++k) {
      products.push_back(softfloat::to_float(single, factors.a[k]) *
                         softfloat::to_float(single, factors.b[k]));
    }
    const float expected = plain_sum(order, products);
    const Bits code =
        sum_products(order, Product::rounded, single, single, factors.a, factors.b).bits;
    if (code == softfloat::from_float(expected)) continue;
    return fmt::format("{} of {} terms is {}, not {:a}; {}", kvsim::to_string(order), terms,
                       code_text(single, code), expected, to_text(factors));
  }
  return std::nullopt;
}

Violation trees_are_their_orders(PropertyInput& input) {
  constexpr int cases = 4;
  for (int i = 0; i < cases; ++i) {
    const Format& format = one_of(input.random, std::span<const Format>(input_formats));
    const Format& accumulator = one_of(input.random, std::span<const Format>(accumulators));
    const std::int64_t terms = input.random.between(1, 70);
    const Order order =
        draw_order(input.random, terms,
                   {.units = true, .rounded = true, .input = format, .accumulator = accumulator});
    const Product product = draw_product(input.random);
    const Factors factors = draw_factors(input.random, format, terms, {});
    const auto tree = build_sum_tree(order, terms);
    if (!tree) return tree.error().message;
    const auto by_tree = evaluate_tree(*tree, product, format, accumulator, factors.a, factors.b);
    if (!by_tree) return by_tree.error().message;
    const auto by_order = sum_products(order, product, format, accumulator, factors.a, factors.b);
    if (by_tree->bits == by_order.bits) continue;
    return fmt::format("{}, {} products in {}: {} by its tree, {} by itself; {}",
                       kvsim::to_string(order), kvsim::to_string(product),
                       softfloat::format_name(accumulator), code_text(accumulator, by_tree->bits),
                       code_text(accumulator, by_order.bits), to_text(factors));
  }
  return std::nullopt;
}

Violation probes_find_the_tree(PropertyInput& input) {
  const Format& single = softfloat::binary32;
  const std::int64_t terms = input.random.between(2, 24);
  Order order;
  do {
    order = draw_order(input.random, terms, {.input = single, .accumulator = single});
  } while (has_exact_sum(order));
  const auto tree = build_sum_tree(order, terms);
  if (!tree) return tree.error().message;
  return probe_violation(*tree, order, draw_product(input.random));
}

/// The engine's sums, one row of them; orders on a matrix unit go through products of matrices.
Result<std::vector<float>> engine_sums(const MatrixProblem& problem, bool as_columns) {
  std::vector<float> out(static_cast<std::size_t>(problem.columns));
  const Result<bool> done = as_columns ? sum_columns({.order = problem.order,
                                                      .product = problem.product,
                                                      .input = problem.input,
                                                      .accumulator = problem.accumulator,
                                                      .terms = problem.terms,
                                                      .columns = problem.columns,
                                                      .stride = problem.b_stride,
                                                      .a = problem.a,
                                                      .b = problem.b.floats()},
                                                     out)
                                       : sum_matrix(problem, out.data(), problem.columns);
  if (!done) return done.error();
  return out;
}

Violation engine_is_reference(PropertyInput& input) {
  const Format& format = one_of(input.random, std::span<const Format>(input_formats));
  const Format& accumulator = one_of(input.random, std::span<const Format>(accumulators));
  const std::int64_t terms = input.random.between(1, 40);
  const std::int64_t columns = input.random.between(1, 33);
  MatrixProblem problem{
      .order =
          draw_order(input.random, terms,
                     {.units = true, .rounded = true, .input = format, .accumulator = accumulator}),
      .product = draw_product(input.random),
      .input = format,
      .accumulator = accumulator,
      .rows = 1,
      .terms = terms,
      .columns = columns,
      .a = nullptr,
      .a_stride = terms,
      .b = {},
      .b_stride = columns};
  const Exponents exponents{.lowest = -6, .highest = 4};
  const std::vector<Bits> a = draw_factors(input.random, format, terms, exponents).a;
  const std::vector<Bits> b = draw_factors(input.random, format, terms * columns, exponents).a;
  const std::vector<float> a_numbers = floats_of(format, a);
  const std::vector<float> b_numbers = floats_of(format, b);
  problem.a = a_numbers.data();
  problem.b = b_numbers.data();
  const auto out = engine_sums(problem, !unit_of(problem.order) && input.random.once_in(2));
  if (!out) return out.error().message;
  for (std::size_t j = 0; j < out->size(); ++j) {
    Factors column{format, a, {}};
    for (std::size_t k = 0; k < a.size(); ++k) column.b.push_back(b[k * out->size() + j]);
    const Bits code =
        sum_products(problem.order, problem.product, format, accumulator, column.a, column.b).bits;
    if (softfloat::to_double(accumulator, code) == static_cast<double>((*out)[j])) continue;
    return fmt::format(
        "{}, {} products in {}: column {} is {:a} by the engine, {} by the "
        "reference; {}",
        kvsim::to_string(problem.order), kvsim::to_string(problem.product),
        softfloat::format_name(accumulator), j, (*out)[j], code_text(accumulator, code),
        to_text(column));
  }
  return std::nullopt;
}

constexpr auto table = std::to_array<Property>({
    {"exact-sums-have-no-order",
     "an exact sum of products is MPFR's, rounded once, in whatever order the terms come",
     "Kulisch's accumulator; MPFR", exact_sums_have_no_order},
    {"whole-numbers-are-exact",
     "small whole numbers add up to their exact sum in every order and on every matrix unit",
     "nothing is rounded", whole_numbers_are_exact},
    {"orders-are-their-definitions",
     "a sum in an order is what loops written from the order's definition give on the host",
     "docs/orders.md; IEEE 754-2019", orders_are_their_definitions},
    {"trees-are-their-orders", "the tree of additions of an order gives the bits of the order",
     "docs/orders.md", trees_are_their_orders},
    {"probes-find-the-tree",
     "masked probes of a sum find the smallest subtree of every two terms of its declared tree",
     "FPRev, arXiv:2411.00442 (2024-11)", probes_find_the_tree},
    {"engine-is-reference", "vector code sums to the bits of the reference on softfloat",
     "docs/correctness.md", engine_is_reference},
});

}  // namespace

std::span<const Property> sum_properties() { return table; }

}  // namespace kvsim::fuzz
