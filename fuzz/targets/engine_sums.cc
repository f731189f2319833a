// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The engine against the scalar reference on softfloat: sums of products of columns and of
// matrices, in any order, product rule and formats, at every SIMD level of this CPU: equal bits.
// The running bound holds. The order's tree, evaluated node by node, gives the same number.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/targets/input.h"
#include "fuzz/targets/order_input.h"
#include "sim/engine/columns.h"
#include "sim/engine/matrix.h"
#include "sim/engine/program.h"
#include "sim/sum.h"
#include "sim/sum_tree.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace {

using kvsim::softfloat::Bits;
using kvsim::softfloat::Format;
using kvsim::targets::require;
namespace sf = kvsim::softfloat;

struct Case {
  kvsim::Order order;
  kvsim::Product product = kvsim::Product::rounded;
  Format input;
  Format accumulator;
  std::int64_t terms = 0;
  std::int64_t columns = 0;
  std::vector<Bits> a;  ///< [terms]
  std::vector<Bits> b;  ///< [terms][columns]

  [[nodiscard]] std::vector<Bits> column(std::int64_t j) const {
    std::vector<Bits> codes;
    codes.reserve(a.size());
    for (std::int64_t k = 0; k < terms; ++k) {
      codes.push_back(b[static_cast<std::size_t>(k * columns + j)]);
    }
    return codes;
  }
};

std::vector<float> floats(const Format& format, const std::vector<Bits>& codes) {
  std::vector<float> values;
  values.reserve(codes.size());
  for (const Bits code : codes) values.push_back(sf::to_float(format, code));
  return values;
}

/// A number as results have it: a NaN is the quiet NaN.
std::uint32_t bits_of(float value) {
  return std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value);
}

std::vector<std::uint32_t> reference(const Case& c) {
  std::vector<std::uint32_t> out;
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const sf::Rounded sum =
        kvsim::sum_products(c.order, c.product, c.input, c.accumulator, c.a, c.column(j));
    out.push_back(bits_of(sf::to_float(c.accumulator, sum.bits)));
    if (j > 0) continue;
    const auto tree = kvsim::build_sum_tree(c.order, c.terms);
    require(tree.has_value());
    const auto evaluated =
        kvsim::evaluate_tree(*tree, c.product, c.input, c.accumulator, c.a, c.column(j));
    require(evaluated.has_value() && *evaluated == sum);
  }
  return out;
}

void check_columns(const Case& c, const std::vector<std::uint32_t>& want, kvsim::SimdLevel level) {
  const std::vector<float> a = floats(c.input, c.a);
  const std::vector<float> b = floats(c.input, c.b);
  kvsim::ColumnsProblem problem;
  problem.order = c.order;
  problem.product = c.product;
  problem.input = c.input;
  problem.accumulator = c.accumulator;
  problem.terms = c.terms;
  problem.columns = problem.stride = c.columns;
  problem.a = a.data();
  problem.b = b.data();
  std::vector<float> out(static_cast<std::size_t>(c.columns));
  std::vector<double> bounds(out.size());
  kvsim::EngineOptions options;
  options.level = level;
  const auto done = kvsim::sum_columns(problem, out, bounds, options);
  if (!done) return kvsim::targets::check_error(done.error());
  for (std::size_t j = 0; j < out.size(); ++j) {
    require(bits_of(out[j]) == want[j]);
    if (!std::isfinite(bounds[j])) continue;
    const auto column = c.column(static_cast<std::int64_t>(j));
    const double exact =
        sf::to_double(sf::binary64, sf::exact_dot(c.input, c.a, column, sf::binary64).bits);
    require(std::abs(out[j] - exact) <= bounds[j] * (1 + 0x1p-40) + std::abs(exact) * 0x1p-50);
  }
}

void check_matrix(const Case& c, const std::vector<std::uint32_t>& want, kvsim::SimdLevel level) {
  const std::vector<float> a = floats(c.input, c.a);
  const std::vector<float> b = floats(c.input, c.b);
  kvsim::MatrixProblem problem;
  problem.order = c.order;
  problem.product = c.product;
  problem.input = c.input;
  problem.accumulator = c.accumulator;
  problem.rows = 1;
  problem.terms = problem.a_stride = c.terms;
  problem.columns = problem.b_stride = c.columns;
  problem.a = a.data();
  problem.b = b.data();
  std::vector<float> out(static_cast<std::size_t>(c.columns));
  kvsim::EngineOptions options;
  options.level = level;
  const auto done = kvsim::sum_matrix(problem, out.data(), c.columns, options);
  if (!done) return kvsim::targets::check_error(done.error());
  for (std::size_t j = 0; j < out.size(); ++j) require(bits_of(out[j]) == want[j]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvsim::targets::Input input(data, size);
  const auto order = kvsim::targets::read_order(input);
  if (!order) return 0;
  Case c;
  c.order = *order;
  c.product = static_cast<kvsim::Product>(input.below(3));
  c.input = input.one_of(sf::formats()).format;
  c.accumulator = input.one_of(sf::formats()).format;
  c.terms = input.below(80);
  c.columns = 1 + input.below(20);
  const auto fits = kvsim::check_formats(c.order, c.input, c.accumulator);
  if (!fits) return kvsim::targets::check_error(fits.error()), 0;
  const auto length = kvsim::check_length(c.order, c.terms);
  if (!length) return kvsim::targets::check_error(length.error()), 0;
  // What the engine takes: numbers that are floats.
  for (const Format& format : {c.input, c.accumulator}) {
    if (format == sf::binary64 || !format.has_zero()) return 0;
  }
  const auto drawing = kvsim::targets::read_drawing(input);
  std::uint64_t counter = 0;
  for (std::int64_t k = 0; k < c.terms; ++k) {
    c.a.push_back(kvsim::targets::draw_code(drawing, c.input, counter++));
  }
  for (std::int64_t k = 0; k < c.terms * c.columns; ++k) {
    c.b.push_back(kvsim::targets::draw_code(drawing, c.input, counter++));
  }
  while (!input.empty() && c.terms > 0) {  // the rest: single numbers
    const auto place = static_cast<std::size_t>(input.word(2));
    const Bits code = input.word(4) & c.input.code_mask();
    (place % 2 == 0 ? c.a[place / 2 % c.a.size()] : c.b[place / 2 % c.b.size()]) = code;
  }
  const std::vector<std::uint32_t> want = reference(c);
  for (const kvsim::SimdLevel level : kvsim::list_simd_levels()) {
    check_columns(c, want, level);
    check_matrix(c, want, level);
  }
  return 0;
}
