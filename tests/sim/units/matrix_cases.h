// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Products of matrices on a unit, made of the operands of operand_mix.h, and what unit_dot() makes
/// of them, element by element.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/matrix.h"
#include "sim/units/dot.h"
#include "softfloat/host.h"
#include "tests/sim/units/operand_mix.h"

namespace kvsim {

/// Whether all numbers of a unit are floats and it takes no scales: what the engine accepts.
inline bool engine_takes(const MatrixUnit& unit) {
  return unit.scale_block == 0 && unit.output.width() <= 32 && unit.operand.width() <= 32;
}

/// One problem with strides of its own; gaps hold numbers that must not matter.
struct MatrixCase {
  std::int64_t rows = 0, terms = 0, columns = 0;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  bool b_transposed = false;
  bool has_addend = true;
  std::vector<float> a, b, c;
  std::vector<std::uint16_t> b_codes;  ///< of b, where its format has 16 bits

  [[nodiscard]] std::int64_t b_at(std::int64_t k, std::int64_t j) const {
    return b_transposed ? j * b_stride + k : k * b_stride + j;
  }
  [[nodiscard]] UnitProblem problem(const MatrixUnit& unit) const {
    return {.unit = &unit,
            .rows = rows,
            .terms = terms,
            .columns = columns,
            .a = a.data(),
            .a_stride = a_stride,
            .b = b.data(),
            .b_stride = b_stride,
            .b_transposed = b_transposed,
            .c = has_addend ? c.data() : nullptr,
            .c_stride = c_stride};
  }
  /// The same with the codes of b.
  [[nodiscard]] UnitProblem code_problem(const MatrixUnit& unit) const {
    UnitProblem codes = problem(unit);
    codes.b = *NumberPointer::of(unit.operand, b_codes.data());
    return codes;
  }
};

/// The shape of a case.
struct MatrixShape {
  std::int64_t rows = 1, terms = 1, columns = 1;
  std::int64_t gap = 0;  ///< floats between the rows of a matrix
  bool b_transposed = false;
  bool has_addend = true;
};

/// A case whose numbers `number(format, which, counter)` gives as codes; which is 0 for a, 1 for b
/// and 2 for c.
template <class Number>
MatrixCase matrix_case(const MatrixUnit& unit, const MatrixShape& shape, const Number& number) {
  MatrixCase out;
  out.rows = shape.rows, out.terms = shape.terms, out.columns = shape.columns;
  out.b_transposed = shape.b_transposed, out.has_addend = shape.has_addend;
  out.a_stride = shape.terms + shape.gap;
  out.b_stride = (shape.b_transposed ? shape.terms : shape.columns) + shape.gap;
  out.c_stride = shape.columns + shape.gap;
  const auto fill = [&](std::vector<float>& to, std::int64_t count, const softfloat::Format& format,
                        int which) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto counter = static_cast<std::uint64_t>(i * 3 + which);
      to.push_back(softfloat::to_float(format, number(format, which, counter)));
    }
  };
  const std::int64_t b_rows = shape.b_transposed ? shape.columns : shape.terms;
  fill(out.a, shape.rows * out.a_stride, unit.operand, 0);
  fill(out.b, b_rows * out.b_stride, unit.operand, 1);
  fill(out.c, shape.rows * out.c_stride, unit.output, 2);
  if (unit.operand == softfloat::bfloat16 || unit.operand == softfloat::binary16) {
    for (std::int64_t i = 0; i < b_rows * out.b_stride; ++i) {
      const auto counter = static_cast<std::uint64_t>(i * 3 + 1);
      out.b_codes.push_back(static_cast<std::uint16_t>(number(unit.operand, 1, counter)));
    }
  }
  return out;
}

/// Numbers of one kind, or of all kinds in turn.
inline auto mixed_numbers(std::uint64_t seed, std::uint64_t kind) {
  return [=](const softfloat::Format& format, int which, std::uint64_t counter) {
    const std::uint64_t at = oracle::mix(seed) + counter;
    const auto mixed = static_cast<oracle::Mix>(kind < oracle::mixes ? kind : counter % 4 + 1);
    softfloat::Bits code = oracle::mixed_code(format, mixed, which == 1, at);
    // Any code would meet an infinity or a NaN in every sum.
    if (mixed != oracle::Mix::any || oracle::mix(at + 1) % 64 == 0) return code;
    const oracle::Kind what = oracle::decode(format, code).kind;
    if (what == oracle::Kind::nan || what == oracle::Kind::infinite) {
      code &= oracle::limits(format).sign | 1;
    }
    return code;
  };
}

/// The code of a float that is a number of the format, or NaN.
inline softfloat::Bits code_of(const softfloat::Format& format, float x) {
  return softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits;
}

/// Every element by unit_dot(), as the bits of a float; NaN is 0x7fc00000.
inline std::vector<std::uint32_t> expected_bits(const MatrixUnit& unit, const MatrixCase& each) {
  std::vector<std::uint32_t> out;
  std::vector<softfloat::Bits> a(static_cast<std::size_t>(each.terms)), b(a.size());
  const auto at = [](const std::vector<float>& list, std::int64_t i) {
    return list[static_cast<std::size_t>(i)];
  };
  for (std::int64_t i = 0; i < each.rows; ++i) {
    for (std::int64_t j = 0; j < each.columns; ++j) {
      for (std::int64_t k = 0; k < each.terms; ++k) {
        a[static_cast<std::size_t>(k)] = code_of(unit.operand, at(each.a, i * each.a_stride + k));
        b[static_cast<std::size_t>(k)] = code_of(unit.operand, at(each.b, each.b_at(k, j)));
      }
      const float c = each.has_addend ? at(each.c, i * each.c_stride + j) : 0.0F;
      const float d = softfloat::to_float(
          unit.output, unit_dot(unit, {.a = a, .b = b, .c = code_of(unit.output, c)}));
      out.push_back(std::isnan(d) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(d));
    }
  }
  return out;
}

/// What the engine computes, with a gap between the rows that must stay as it was.
inline std::vector<std::uint32_t> engine_bits(const UnitProblem& each,
                                              const EngineOptions& options) {
  const std::int64_t stride = each.columns + 3;
  const float untouched = -123.0F;
  std::vector<float> out(static_cast<std::size_t>(each.rows * stride), untouched);
  const Result<bool> done = multiply_on_unit(each, out.data(), stride, options);
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  std::vector<std::uint32_t> bits;
  for (std::int64_t i = 0; i < each.rows; ++i) {
    for (std::int64_t j = 0; j < stride; ++j) {
      const float x = out[static_cast<std::size_t>(i * stride + j)];
      if (j < each.columns) {
        bits.push_back(std::bit_cast<std::uint32_t>(x));
      } else {
        EXPECT_EQ(x, untouched) << i << ", " << j;
      }
    }
  }
  return bits;
}

/// Compares every level of this CPU with unit_dot(), with b as floats and as codes; true where all
/// agree.
inline bool levels_agree(const MatrixUnit& unit, const MatrixCase& each, const std::string& what) {
  const std::vector<std::uint32_t> expected = expected_bits(unit, each);
  bool all = true;
  const std::size_t stored = each.b_codes.empty() ? 1 : 2;
  const std::vector<SimdLevel> levels = list_simd_levels();
  for (std::size_t run = 0; run < stored * levels.size(); ++run) {
    const SimdLevel level = levels[run / stored];
    const bool codes = run % stored == 1;
    const UnitProblem problem = codes ? each.code_problem(unit) : each.problem(unit);
    const std::vector<std::uint32_t> got = engine_bits(problem, {.level = level});
    for (std::size_t i = 0; i < expected.size() && all; ++i) {
      if (got[i] == expected[i]) continue;
      all = false;
      const auto columns = static_cast<std::size_t>(each.columns);
      ADD_FAILURE() << to_string(unit) << ", " << simd_level_name(level)
                    << (codes ? ", codes, " : ", floats, ") << what << ", " << each.rows << " × "
                    << each.terms << " × " << each.columns << ": element (" << i / columns << ", "
                    << i % columns << ") is " << std::hex << got[i] << " instead of "
                    << expected[i];
    }
  }
  return all;
}

}  // namespace kvsim
