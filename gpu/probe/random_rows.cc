// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/random_rows.h"

#include <algorithm>

#include "gpu/probe/row_builder.h"
#include "sim/philox.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;
using softfloat::Format;

enum class Kind : std::uint8_t { any, near, cancelling, powers };
constexpr std::size_t kinds = 4;

/// Random codes of one row: each draw is addressed by its number.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t row) : seed_(seed), row_(row) {}

  Bits word() { return philox_bits(seed_, row_, next_++); }

  /// A finite code with one of `count` exponent fields around that of 1; or 0.
  Bits near_one(const Format& format, int count, bool power, bool zeros) {
    const Bits bits = word();
    if (zeros && bits % 3 == 0) return 0;
    const int top = (1 << format.exponent_bits) - 2;
    const int one = (format.has_zero() ? 1 : 0) - format.emin();
    const int low = std::clamp(one - count / 2, 0, top);
    const int high = std::min(low + count - 1, top);
    const int field = low + static_cast<int>((bits >> 8) % static_cast<Bits>(high - low + 1));
    const Bits fraction = power ? 0 : (bits >> 24) & format.trailing_mask();
    const Bits sign = (bits >> 63) != 0 ? format.sign_bit() : 0;
    return sign | static_cast<Bits>(field) << format.trailing_bits() | fraction;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t row_;
  std::uint64_t next_ = 0;
};

constexpr int near_exponents = 8;

/// A code of an operand: tf32 may have any low bits.
Bits operand(const UnitShape& shape, Kind kind, Draw& draw) {
  if (kind == Kind::any) return draw.word() & shape.operand.code_mask();
  return draw.near_one(shape.operand, near_exponents, kind == Kind::powers, kind == Kind::powers);
}

ProbeRow random_row(const UnitShape& shape, Kind kind, Draw draw) {
  ProbeRow row = RowBuilder(shape).row();
  for (std::size_t k = 0; k < row.a.size(); ++k) {
    if (kind == Kind::cancelling && k >= row.a.size() / 2) {
      // Halves that lie apart, so that they meet in another block where there are several.
      const std::size_t other = k - row.a.size() / 2;
      row.a[k] = row.a[other] ^ shape.operand.sign_bit();
      row.b[k] = row.b[other];
      continue;
    }
    row.a[k] = operand(shape, kind, draw);
    row.b[k] = operand(shape, kind, draw);
  }
  if (kind == Kind::cancelling) {
    // Without this everything cancels exactly.
    row.a.back() = operand(shape, kind, draw);
  }
  for (std::size_t i = 0; i < row.a_scales.size(); ++i) {
    if (kind == Kind::any) {
      row.a_scales[i] = draw.word() & shape.scale.code_mask();
      row.b_scales[i] = draw.word() & shape.scale.code_mask();
    } else {
      row.a_scales[i] = draw.near_one(shape.scale, near_exponents, false, false);
      row.b_scales[i] = draw.near_one(shape.scale, near_exponents, false, false);
    }
  }
  row.c = kind == Kind::any ? draw.word() & shape.output.code_mask()
                            : draw.near_one(shape.output, near_exponents + 8, kind == Kind::powers,
                                            kind == Kind::powers);
  return row;
}

}  // namespace

std::vector<ProbeRow> random_rows(const UnitShape& shape, std::size_t count, std::uint64_t seed) {
  std::vector<ProbeRow> rows;
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(random_row(shape, static_cast<Kind>(i % kinds), Draw(seed, i)));
  }
  return rows;
}

}  // namespace kvsim::gpu
