// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/row_builder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// The code of 2^exponent, if the format has it; subnormal numbers too.
std::optional<Bits> power_code(const Format& format, int exponent) {
  if (exponent > format.emax()) return std::nullopt;
  if (exponent >= format.emin()) {
    const int field = exponent - format.emin() + (format.has_zero() ? 1 : 0);
    return static_cast<Bits>(field) << format.trailing_bits();
  }
  const int place = exponent - (format.emin() - format.trailing_bits());
  if (!format.has_zero() || place < 0) return std::nullopt;
  return Bits{1} << place;
}

int smallest_exponent(const Format& format) {
  return format.has_zero() ? format.emin() - format.trailing_bits() : format.emin();
}

/// The exponents of two numbers whose product is 2^exponent, both normal if that can be.
std::optional<std::pair<int, int>> split(const Format& format, int exponent) {
  const int half = exponent >= 0 ? exponent / 2 : (exponent - 1) / 2;
  int low = std::clamp(half, format.emin(), format.emax());
  int high = exponent - low;
  if (high > format.emax()) high = format.emax();
  if (exponent < 2 * format.emin()) {
    low = std::max(smallest_exponent(format), exponent - format.emin());
    high = exponent - low;
  }
  if (low + high != exponent || high > format.emax() || low > format.emax() ||
      high < smallest_exponent(format)) {
    return std::nullopt;
  }
  return std::pair{low, high};
}

}  // namespace

std::optional<Bits> exact_code(const Format& format, double value) {
  const softfloat::Rounded rounded =
      softfloat::convert(format, softfloat::binary64, softfloat::from_double(value));
  if (rounded.flags.inexact || rounded.flags.overflow) return std::nullopt;
  return rounded.bits;
}

ProbeRange range_of(const UnitShape& shape) {
  ProbeRange range;
  range.smallest_normal = 2 * shape.input.emin();
  range.smallest = 2 * smallest_exponent(shape.input);
  range.largest = 2 * shape.input.emax();
  range.output_smallest = smallest_exponent(shape.output);
  range.output_normal = shape.output.emin();
  range.output_largest = shape.output.emax();
  return range;
}

RowBuilder::RowBuilder(const UnitShape& shape) : shape_(shape) {
  const auto products = static_cast<std::size_t>(shape.products);
  row_.a.assign(products, 0);
  row_.b.assign(products, 0);
  if (shape.scale_block == 0) return;
  const auto block = static_cast<std::size_t>(shape.scale_block);
  const Bits one = power_code(shape.scale, 0).value_or(0);
  row_.a_scales.assign((products + block - 1) / block, one);
  row_.b_scales = row_.a_scales;
}

void RowBuilder::codes(int k, Bits a, Bits b) {
  row_.a[static_cast<std::size_t>(k)] = a;
  row_.b[static_cast<std::size_t>(k)] = b;
}

bool RowBuilder::product(int k, int exponent, bool negative) {
  const auto parts = split(shape_.input, exponent);
  if (!parts) return false;
  // tf32 has the exponents of the binary32 that holds it.
  const auto a = power_code(shape_.operand, parts->first);
  const auto b = power_code(shape_.operand, parts->second);
  if (!a || !b) return false;
  codes(k, negative ? *a | shape_.operand.sign_bit() : *a, *b);
  return true;
}

bool RowBuilder::factors(int k, double a, double b) {
  if (!exact_code(shape_.input, a) || !exact_code(shape_.input, b)) return false;
  const auto a_code = exact_code(shape_.operand, a);
  const auto b_code = exact_code(shape_.operand, b);
  if (!a_code || !b_code) return false;
  codes(k, *a_code, *b_code);
  return true;
}

bool RowBuilder::addend(double value) {
  const auto code = exact_code(shape_.output, value);
  if (code) row_.c = *code;
  return code.has_value();
}

bool RowBuilder::addend_power(int exponent, bool negative) {
  const auto code = power_code(shape_.output, exponent);
  if (code) row_.c = negative ? *code | shape_.output.sign_bit() : *code;
  return code.has_value();
}

bool RowBuilder::scale(int k, int exponent) {
  if (shape_.scale_block == 0) return exponent == 0;
  const auto parts = split(shape_.scale, exponent);
  if (!parts) return false;
  const auto a = power_code(shape_.scale, parts->first);
  const auto b = power_code(shape_.scale, parts->second);
  if (!a || !b) return false;
  const auto block = static_cast<std::size_t>(k / shape_.scale_block);
  row_.a_scales[block] = *a;
  row_.b_scales[block] = *b;
  return true;
}

}  // namespace kvsim::gpu
