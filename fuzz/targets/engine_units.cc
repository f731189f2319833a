// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Products of matrices on every matrix unit, at every SIMD level of this CPU, against unit_dot():
// equal bits, with and without an addend, from floats and from codes.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/targets/input.h"
#include "fuzz/targets/order_input.h"
#include "sim/engine/matrix.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace {

using kvsim::softfloat::Bits;
using kvsim::softfloat::Format;
using kvsim::targets::require;
namespace sf = kvsim::softfloat;

/// Codes of a matrix beside their values.
struct Matrix {
  std::vector<Bits> codes;
  std::vector<float> values;
  std::vector<std::uint16_t> short_codes;

  void add(const Format& format, Bits code) {
    codes.push_back(code);
    values.push_back(sf::to_float(format, code));
    short_codes.push_back(static_cast<std::uint16_t>(code));
  }
};

Matrix draw(const Format& format, const kvsim::targets::Drawing& drawing, std::int64_t count,
            std::uint64_t first) {
  Matrix matrix;
  for (std::int64_t i = 0; i < count; ++i) {
    matrix.add(format,
               kvsim::targets::draw_code(drawing, format, first + static_cast<std::uint64_t>(i)));
  }
  return matrix;
}

std::uint32_t bits_of(float value) {
  return std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvsim::targets::Input input(data, size);
  const kvsim::MatrixUnit& unit = input.one_of(kvsim::matrix_units());
  if (unit.scale_block > 0 || unit.operand == sf::binary64 || unit.output == sf::binary64) return 0;
  const std::int64_t rows = 1 + input.below(5);
  const std::int64_t terms = input.below(80);
  const std::int64_t columns = 1 + input.below(20);
  const bool addend = input.flag();
  const bool transposed = input.flag();
  const bool as_codes =
      input.flag() && (unit.operand == sf::binary16 || unit.operand == sf::bfloat16);
  const auto factors = kvsim::targets::read_drawing(input);
  const auto addends = kvsim::targets::read_drawing(input);
  const Matrix a = draw(unit.operand, factors, rows * terms, 0);
  const Matrix b = draw(unit.operand, factors, terms * columns, 1U << 20U);
  const Matrix c = draw(unit.output, addends, rows * columns, 1U << 21U);

  std::vector<std::uint32_t> want;
  const auto b_place = [&](std::int64_t k, std::int64_t j) {
    return static_cast<std::size_t>(transposed ? j * terms + k : k * columns + j);
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      std::vector<Bits> column;
      column.reserve(static_cast<std::size_t>(terms));
      for (std::int64_t k = 0; k < terms; ++k) column.push_back(b.codes[b_place(k, j)]);
      kvsim::DotOperands operands;
      operands.a = std::span(a.codes).subspan(static_cast<std::size_t>(i * terms),
                                              static_cast<std::size_t>(terms));
      operands.b = column;
      if (addend) operands.c = c.codes[static_cast<std::size_t>(i * columns + j)];
      want.push_back(bits_of(sf::to_float(unit.output, kvsim::unit_dot(unit, operands))));
    }
  }
  kvsim::UnitProblem problem;
  problem.unit = &unit;
  problem.rows = rows;
  problem.terms = problem.a_stride = terms;
  problem.columns = columns;
  problem.a = a.values.data();
  const auto code =
      unit.operand == sf::binary16 ? kvsim::NumberCode::binary16 : kvsim::NumberCode::bfloat16;
  problem.b = as_codes ? kvsim::NumberPointer(code, b.short_codes.data())
                       : kvsim::NumberPointer(b.values.data());
  problem.b_transposed = transposed;
  problem.b_stride = transposed ? terms : columns;
  problem.c = addend ? c.values.data() : nullptr;
  problem.c_stride = columns;
  std::vector<float> out(want.size());
  for (const kvsim::SimdLevel level : kvsim::list_simd_levels()) {
    kvsim::EngineOptions options;
    options.level = level;
    const auto done = kvsim::multiply_on_unit(problem, out.data(), columns, options);
    if (!done) {
      kvsim::targets::check_error(done.error());
      continue;
    }
    for (std::size_t i = 0; i < out.size(); ++i) require(bits_of(out[i]) == want[i]);
  }
  return 0;
}
