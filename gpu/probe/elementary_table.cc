// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/elementary_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/elementary.h"
#include "sim/exp_models.h"
#include "sim/philox.h"

namespace kvsim::gpu {
namespace {

constexpr std::array rows{
    ElementaryRow{"ex2", ElementaryFunction::ex2, "ex2.approx.ftz.f32", "i / n", 1, 24,
                  "2^x of the fraction of x, cut down to the table's bits, times a power of two"},
    ElementaryRow{"rcp", ElementaryFunction::rcp, "rcp.approx.ftz.f32", "1 + i / n", 1, 23,
                  "1/x of the significand, times a power of two"},
    ElementaryRow{"rsqrt", ElementaryFunction::rsqrt, "rsqrt.approx.ftz.f32",
                  "1 + i / n, then twice that", 2, 23,
                  "1/sqrt(x) of x between 1 and 4, times a power of two"},
    ElementaryRow{"lg2", ElementaryFunction::lg2, "lg2.approx.ftz.f32", "1 + i / n", 1, 23,
                  "log2 of the significand and the exponent, added and rounded"},
};

/// A subnormal number becomes zero.
float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x;
}

/// x = significand × 2^exponent with the significand in [1, 2); x is positive and normal.
struct Parts {
  float significand = 1;
  int exponent = 0;
};
Parts parts(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return {std::bit_cast<float>((bits & 0x7fffff) | 0x3f800000),
          static_cast<int>(bits >> 23 & 0xff) - 127};
}

/// value × 2^exponent, exact or flushed; infinity where it is too large.
float scaled(float value, int exponent) {
  return flush(static_cast<float>(std::ldexp(static_cast<double>(value), exponent)));
}

/// What the rule of a function makes of the table for any positive normal argument.
class Rule {
 public:
  Rule(const ElementaryRow& row, std::span<const float> values, int bits)
      : function_(row.function), values_(values), bits_(bits), exp_table_{bits, values} {}

  [[nodiscard]] float operator()(float x) const {
    if (function_ == ElementaryFunction::ex2) {
      return ExpFunction(ExpModel::ex2_approx, {.table = &exp_table_}).exp2(x);
    }
    const Parts p = parts(x);
    if (function_ == ElementaryFunction::rcp) return scaled(entry(p, 0), -p.exponent);
    if (function_ == ElementaryFunction::rsqrt) {
      const int odd = p.exponent & 1;
      return scaled(entry(p, odd), -(p.exponent - odd) / 2);
    }
    return entry(p, 0) + static_cast<float>(p.exponent);
  }

 private:
  [[nodiscard]] float entry(const Parts& p, int half) const {
    const auto fraction = std::bit_cast<std::uint32_t>(p.significand) & 0x7fffff;
    const std::size_t size = std::size_t{1} << bits_;
    return values_[static_cast<std::size_t>(half) * size + (fraction >> (23 - bits_))];
  }

  ElementaryFunction function_;
  std::span<const float> values_;
  int bits_;
  ExpTable exp_table_;
};

/// Arguments of all sizes, whose fraction fits the table: of ex2 both signs, from −150 to 140.
std::vector<float> other_arguments(ElementaryFunction function, int bits, std::uint64_t seed) {
  constexpr std::size_t count = 1 << 16;
  std::vector<float> arguments(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = philox_bits(seed, 0, i);
    if (function == ElementaryFunction::ex2 && i % 2 == 0) {
      const auto fraction = static_cast<double>(word >> 32 & ((std::uint64_t{1} << bits) - 1));
      const double whole = static_cast<double>(static_cast<int>(word % 290) - 150);
      arguments[i] = static_cast<float>(whole + std::ldexp(fraction, -bits));
      continue;
    }
    // Any positive normal number, its last bits 0 where the table has fewer.
    const std::uint32_t mask = ~((std::uint32_t{1} << (23 - std::min(bits, 23))) - 1);
    const auto fraction = static_cast<std::uint32_t>(word) & 0x7fffff & mask;
    const auto field = static_cast<std::uint32_t>(1 + (word >> 32) % 254);
    arguments[i] = std::bit_cast<float>(field << 23 | fraction);
    if (function == ElementaryFunction::ex2 && (word >> 63) != 0) arguments[i] = -arguments[i];
  }
  return arguments;
}

bool same_bits(float x, float y) {
  return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

/// The distance of two positive numbers in units in the last place of the second.
double distance(float x, float reference) {
  if (same_bits(x, reference)) return 0;
  const int exponent =
      std::ilogb(std::max(std::fabs(reference), std::numeric_limits<float>::min()));
  return std::fabs(static_cast<double>(x) - static_cast<double>(reference)) *
         std::ldexp(1.0, 23 - exponent);
}

}  // namespace

std::span<const ElementaryRow> elementary_rows() { return rows; }

std::vector<float> table_inputs(const ElementaryRow& row, int bits) {
  const std::size_t size = std::size_t{1} << bits;
  std::vector<float> inputs(size * static_cast<std::size_t>(row.halves));
  const double first = row.function == ElementaryFunction::ex2 ? 0 : 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double x = first + std::ldexp(static_cast<double>(i % size), -bits);
    inputs[i] = static_cast<float>(i < size ? x : 2 * x);
  }
  return inputs;
}

float correctly_rounded(ElementaryFunction function, float x) {
  const float argument = flush(x);
  switch (function) {
    case ElementaryFunction::rcp:
      // A quotient in binary64, rounded again, is correctly rounded: 53 >= 2 · 24 + 2.
      return flush(static_cast<float>(1.0 / static_cast<double>(argument)));
    case ElementaryFunction::rsqrt:
      return rsqrt_f32(argument);
    case ElementaryFunction::lg2:
      return log2_f32(argument);
    case ElementaryFunction::ex2:
      break;
  }
  return flush(exp2_f32(argument));
}

Result<ElementaryTable> capture_table(const ElementaryRow& row, int bits, std::uint64_t seed,
                                      const ElementaryCall& call) {
  const std::vector<float> inputs = table_inputs(row, bits);
  auto values = call(inputs);
  if (!values) return values.error();
  ElementaryTable table;
  table.values = std::move(*values);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double error = distance(table.values[i], correctly_rounded(row.function, inputs[i]));
    if (error != 0) ++table.not_rounded;
    table.largest_error = std::max(table.largest_error, error);
  }
  const std::vector<float> others = other_arguments(row.function, bits, seed);
  const auto seen = call(others);
  if (!seen) return seen.error();
  const Rule rule(row, table.values, bits);
  table.tried = others.size();
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (same_bits(rule(others[i]), (*seen)[i])) ++table.by_rule;
  }
  return table;
}

}  // namespace kvsim::gpu
