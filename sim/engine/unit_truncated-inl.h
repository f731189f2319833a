// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// T-FDPA in float lanes, a column of b in each. Compiled once per instruction set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_TRUNCATED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_TRUNCATED_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_TRUNCATED_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_TRUNCATED_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"
#include "softfloat/formats.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// What a block of one kind needs beyond the common steps.
enum class BlockKind : std::uint8_t {
  narrow,       ///< exponents within 2^±36: no product or sum comes near the ends of float
  narrow_half,  ///< the same with binary16 output, which may be −0 or infinite on the way
  wide,         ///< products may lie below everything that lanes represent
};

// Exponent codes: a has 36 − e, b has e + 219, both as bytes; b − a with saturation is the sum of
// the exponents plus 183, or 0 where either is zero.
inline constexpr int b_code_shift = 219 - bias;
inline constexpr int product_code_shift = 183 - bias;
inline constexpr int most_groups = static_cast<int>(longest_block) / 4;
inline constexpr int code_bytes = 64;  ///< of one group of 4 rows of b and one vector

/// What packing found in a panel of b, byte by byte: the largest biased exponents, and the smallest
/// magnitude less one unit (that of a zero is the largest of all).
struct PanelRange {
  ByteVector largest;
  hn::Vec<hn::RebindToUnsigned<FloatTag>> smallest;
  HWY_INLINE PanelRange()
      : largest(hn::Zero(ByteTag())),
        smallest(hn::Set(hn::RebindToUnsigned<FloatTag>(), UINT32_MAX)) {}
};

/// The exponent codes of `groups` × 4 rows of b in one vector of columns. The four bytes of a lane
/// belong to four consecutive k.
template <BlockKind kKind>
HWY_INLINE void pack_exponents(const UnitPlan& plan, const float* b, std::int64_t stride,
                               int groups, std::uint8_t* codes, PanelRange& range) {
  const FloatTag d;
  const IntTag di;
  const ByteTag d8;
  const IntVector mask = hn::Set(di, exponent_mask);
  const ByteVector least = hn::Set(d8, static_cast<std::uint8_t>(plan.smallest_exponent + bias));
  const ByteVector shift = hn::Set(d8, static_cast<std::uint8_t>(b_code_shift));
  for (int g = 0; g < groups; ++g) {
    const FloatVector x0 = hn::LoadU(d, b);
    const FloatVector x1 = hn::LoadU(d, b + stride);
    const FloatVector x2 = hn::LoadU(d, b + 2 * stride);
    const FloatVector x3 = hn::LoadU(d, b + 3 * stride);
    b += 4 * stride;
    const IntVector low = hn::Or(hn::ShiftRight<23>(hn::And(hn::BitCast(di, x0), mask)),
                                 hn::ShiftRight<15>(hn::And(hn::BitCast(di, x1), mask)));
    const IntVector high = hn::Or(hn::ShiftRight<7>(hn::And(hn::BitCast(di, x2), mask)),
                                  hn::ShiftLeft<1>(hn::And(hn::BitCast(di, x3), mask)));
    const ByteVector fields = hn::BitCast(d8, hn::Or(low, high));
    const ByteVector sum = hn::SaturatedAdd(hn::Max(fields, least), shift);
    const ByteVector code = hn::IfThenZeroElse(hn::Eq(fields, hn::Zero(d8)), sum);
    hn::StoreU(code, d8, codes + g * code_bytes);
    range.largest = hn::Max(range.largest, fields);
    if constexpr (kKind == BlockKind::wide) {
      const hn::RebindToUnsigned<FloatTag> du;
      for (const FloatVector& x : {x0, x1, x2, x3}) {
        const auto less_one = hn::Sub(hn::BitCast(du, hn::Abs(x)), hn::Set(du, 1U));
        range.smallest = hn::Min(range.smallest, less_one);
      }
    }
  }
}

/// The exponents of four products in each lane, as bytes.
HWY_INLINE ByteVector group_code(const std::uint8_t* a_codes, const std::uint8_t* b_codes) {
  const ByteTag d8;
  std::int32_t word;
  std::memcpy(&word, a_codes, sizeof word);
  const ByteVector a = hn::BitCast(d8, hn::Set(IntTag(), word));
  return hn::SaturatedSub(hn::LoadU(d8, b_codes), a);
}

/// The largest product exponent of a block in each lane, plus 183, where a float has its exponent;
/// 0 where all products are zero.
template <int kGroups>
HWY_INLINE IntVector largest_code(const std::uint8_t* a_codes, const std::uint8_t* b_codes) {
  const IntTag di;
  const ByteTag d8;
  const hn::RebindToUnsigned<IntTag> du;
  ByteVector largest = group_code(a_codes, b_codes);
  KVSIM_UNROLL(8)
  for (int g = 1; g < kGroups; ++g) {
    largest = hn::Max(largest, group_code(a_codes + 4 * g, b_codes + g * code_bytes));
  }
  largest = hn::Max(largest, hn::BitCast(d8, hn::ShiftRight<16>(hn::BitCast(du, largest))));
  largest = hn::Max(largest, hn::BitCast(d8, hn::ShiftRight<8>(hn::BitCast(du, largest))));
  return hn::BitCast(di, hn::ShiftRight<1>(hn::ShiftLeft<24>(hn::BitCast(du, largest))));
}

/// What all blocks of a tile have in common.
struct BlockConstants {
  IntVector least;          ///< the least largest exponent, biased and in place
  IntVector scale_base;     ///< minus the largest exponent: the scale 2^(F − e)
  IntVector raised_base;    ///< minus the largest exponent: F − e + UnitPlan::a_scale, in place
  IntVector fraction_bits;  ///< F in place
  std::uint64_t cut;        ///< the bits of a double that truncation drops
  IntVector dropped;        ///< the bits of a float that it drops
  FloatLanes<RoundBinary16> half;
  bool fits;

  explicit HWY_INLINE BlockConstants(const UnitPlan& plan, const LanePlan& half_plan)
      : least(hn::Set(IntTag(), exponent_field(plan.least_exponent + bias))),
        scale_base(hn::Set(IntTag(), exponent_field(2 * bias + plan.fraction_bits))),
        raised_base(hn::Set(IntTag(), exponent_field(bias + plan.fraction_bits + plan.a_scale))),
        fraction_bits(hn::Set(IntTag(), exponent_field(plan.fraction_bits))),
        cut((std::uint64_t{1} << (53 - plan.kept_bits)) - 1),
        dropped(hn::Set(IntTag(), (1 << (24 - plan.kept_bits)) - 1)),
        half(half_plan),
        fits(plan.fits_int32) {}
};

/// One vector of elements while a block is added to it.
template <BlockKind kKind>
struct Cell {
  FloatVector c;
  FloatVector scale;     ///< 2^(F − e_max)
  IntVector raise;       ///< narrow: what the exponent of a scaled product grows by, in place
  FloatVector inverse;   ///< 2^(e_max − F)
  IntVector sum;         ///< of the products, in units of `inverse`
  IntVector rest;        ///< the addend, and products that `sum` has no room for
  FloatVector doubtful;  ///< wide: all bits set where lanes do not know e_max

  HWY_INLINE Cell() {}

  HWY_INLINE void start(const BlockConstants& constants, const float* from, IntVector code,
                        bool has_tiny) {
    const FloatTag d;
    const IntTag di;
    c = hn::LoadU(d, from);
    IntVector addend = hn::And(hn::BitCast(di, c), hn::Set(di, exponent_mask));
    if constexpr (kKind == BlockKind::narrow_half) {
      // A subnormal of binary16 has its smallest exponent, a zero none.
      const IntVector normal = hn::Max(addend, hn::Set(di, exponent_field(-14 + bias)));
      addend = hn::IfThenZeroElse(hn::Eq(addend, hn::Zero(di)), normal);
    }
    const IntVector product = hn::Sub(code, hn::Set(di, exponent_field(product_code_shift)));
    const IntVector e = hn::Max(hn::Max(addend, constants.least), product);
    if constexpr (kKind == BlockKind::wide) {
      const auto below = hn::Lt(hn::Max(addend, product), constants.least);
      const auto any = hn::Gt(code, hn::Set(di, has_tiny ? -1 : 0));
      doubtful = hn::BitCast(d, hn::VecFromMask(di, hn::And(below, any)));
    }
    scale = hn::BitCast(d, hn::Sub(constants.scale_base, e));
    inverse = hn::BitCast(d, hn::Sub(e, constants.fraction_bits));
    rest = truncate(hn::Mul(c, scale));
    if constexpr (kKind != BlockKind::wide) raise = hn::Sub(constants.raised_base, e);
    sum = hn::Zero(di);
  }

  /// The product in units of `inverse`, still with a fraction. Where exponents are narrow an
  /// integer addition scales it, for which a CPU has more units than for another multiplication: a
  /// product is then 2^−a_scale times what it should be, so that the exponent of a zero becomes
  /// that of a number below 1 and no other exponent leaves its range.
  HWY_INLINE FloatVector scaled(FloatVector product) const {
    if constexpr (kKind == BlockKind::wide) return hn::Mul(product, scale);
    return hn::BitCast(FloatTag(), hn::Add(hn::BitCast(IntTag(), product), raise));
  }

  /// The sum as doubles, exact.
  HWY_INLINE DoubleVector lower_sum(bool fits, IntVector total) const {
    const DoubleTag dd;
    const hn::Rebind<std::int32_t, DoubleTag> half;
    if (fits) return hn::PromoteTo(dd, hn::LowerHalf(half, total));
    return hn::Add(hn::PromoteTo(dd, hn::LowerHalf(half, sum)),
                   hn::PromoteTo(dd, hn::LowerHalf(half, rest)));
  }
  HWY_INLINE DoubleVector upper_sum(bool fits, IntVector total) const {
    const DoubleTag dd;
    const hn::Rebind<std::int32_t, DoubleTag> half;
    if (fits) return hn::PromoteTo(dd, hn::UpperHalf(half, total));
    return hn::Add(hn::PromoteTo(dd, hn::UpperHalf(half, sum)),
                   hn::PromoteTo(dd, hn::UpperHalf(half, rest)));
  }

  /// To 24 bits or fewer: toward zero, or to odd where another rounding follows.
  static HWY_INLINE hn::Vec<HalfFloatTag> cut(DoubleVector x, std::uint64_t dropped) {
    const DoubleTag dd;
    const hn::RebindToUnsigned<DoubleTag> du;
    auto code = hn::BitCast(du, x);
    const auto mask = hn::Set(du, dropped);
    if constexpr (kKind == BlockKind::narrow_half) {
      code = hn::Or(code, hn::Add(hn::And(code, mask), mask));
    }
    return hn::DemoteTo(HalfFloatTag(), hn::BitCast(dd, hn::AndNot(mask, code)));
  }

  /// The sum of the block in units of `inverse`, converted as `cut` does.
  HWY_INLINE FloatVector converted(const BlockConstants& constants) const {
    const FloatTag d;
    const IntVector total = hn::Add(sum, rest);
#if HWY_TARGET == HWY_AVX3
    const IntTag di;
    // Overflow of the addition flips the sign against both numbers.
    const IntVector flips = hn::And(hn::Xor(sum, total), hn::Xor(rest, total));
    if (HWY_LIKELY(constants.fits || hn::AllFalse(di, hn::Lt(flips, hn::Zero(di))))) {
      FloatVector result{
          _mm512_cvt_roundepi32_ps(total.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
      if constexpr (kKind == BlockKind::narrow_half) {
        const auto inexact = hn::Ne(truncate(result), total);
        const IntVector last = hn::IfThenElseZero(inexact, hn::Set(di, 1));
        return hn::Or(result, hn::BitCast(d, last));
      }
      return hn::AndNot(hn::BitCast(d, constants.dropped), result);
    }
#endif
    return hn::Combine(d, cut(upper_sum(constants.fits, total), constants.cut),
                       cut(lower_sum(constants.fits, total), constants.cut));
  }

  HWY_INLINE void finish(const BlockConstants& constants, float* to) {
    const FloatTag d;
    FloatVector result = converted(constants);
    result = hn::Mul(result, inverse);
    if constexpr (kKind == BlockKind::narrow_half) {
      const IntTag di;
      result = constants.half.round(result);
      const IntVector code = hn::BitCast(di, c);
      const IntVector magnitude = hn::And(code, hn::Set(di, magnitude_mask));
      const auto special = hn::Gt(magnitude, hn::Set(di, exponent_field(255) - 1));
      result = hn::IfThenElse(hn::RebindMask(d, special), c, result);
      // −0 stays only where all products are −0: softfloat looks at them.
      const auto negative_zero = hn::And(hn::RebindMask(d, hn::Eq(code, hn::Set(di, sign_mask))),
                                         hn::Eq(result, hn::Zero(d)));
      result = hn::Or(result, hn::VecFromMask(d, negative_zero));
    }
    if constexpr (kKind == BlockKind::wide) {
      result = hn::Or(hn::IfThenElse(hn::IsNaN(c), c, result), doubtful);
    }
    hn::StoreU(result, d, to);
  }
};

/// One block of kRows × kVectors vectors of elements.
template <BlockKind kKind, int kFanIn, int kRows, int kVectors>
struct BlockStep {
  const BlockConstants& constants;
  const float* a;               ///< the block's first operand in the first row
  const std::uint8_t* a_codes;  ///< the same place
  std::int64_t a_stride;
  const std::uint8_t* a_flags;
  const float* b;  ///< first row and column
  std::int64_t b_stride;
  const std::uint8_t* b_codes;
  bool b_has_tiny;
  float* sums;
  std::int64_t width;  ///< floats from one row of sums to the next

  HWY_INLINE void run() const {
    Cell<kKind> c0, c1, c2, c3;
    start<0>(c0);
    start<1>(c1);
    start<2>(c2);
    start<3>(c3);
    constexpr int group = kFanIn < 16 ? kFanIn : 16;  // products that one sum has room for
    add_group<group>(c0, c1, c2, c3, 0);
    if constexpr (kFanIn > group) {
      if (!constants.fits) {
        spill<0>(c0);
        spill<1>(c1);
        spill<2>(c2);
        spill<3>(c3);
      }
      add_group<group>(c0, c1, c2, c3, group);
    }
    finish<0>(c0);
    finish<1>(c1);
    finish<2>(c2);
    finish<3>(c3);
  }

 private:
  static constexpr int cells = kRows * kVectors;

  template <int kCell>
  HWY_INLINE float* place() const {
    return sums + kCell / kVectors * width +
           kCell % kVectors * static_cast<std::int64_t>(float_lanes());
  }
  template <int kCell>
  HWY_INLINE void start(Cell<kKind>& cell) const {
    if constexpr (kCell < cells) {
      constexpr int row = kCell / kVectors;
      const IntVector code = largest_code<kFanIn / 4>(
          a_codes + row * a_stride, b_codes + kCell % kVectors * most_groups * code_bytes);
      const bool tiny =
          kKind == BlockKind::wide && (b_has_tiny || a_flags[row] == row_has_tiny_numbers);
      cell.start(constants, place<kCell>(), code, tiny);
    }
  }
  template <int kCount>
  HWY_INLINE void add_group(Cell<kKind>& c0, Cell<kKind>& c1, Cell<kKind>& c2, Cell<kKind>& c3,
                            std::int64_t first) const {
    const std::int64_t lanes = static_cast<std::int64_t>(float_lanes());
    const float* row = b + first * b_stride;
    KVSIM_UNROLL(4)
    for (std::int64_t k = first; k < first + kCount; ++k, row += b_stride) {
      add<0>(c0, k, row, lanes);
      add<1>(c1, k, row, lanes);
      add<2>(c2, k, row, lanes);
      add<3>(c3, k, row, lanes);
    }
  }
  template <int kCell>
  HWY_INLINE void add(Cell<kKind>& cell, std::int64_t k, const float* row,
                      std::int64_t lanes) const {
    if constexpr (kCell < cells) {
      const FloatTag d;
      const FloatVector x = hn::Set(d, a[kCell / kVectors * a_stride + k]);
      const FloatVector product = hn::Mul(x, hn::LoadU(d, row + kCell % kVectors * lanes));
      cell.sum = hn::Add(cell.sum, truncate(cell.scaled(product)));
    }
  }
  template <int kCell>
  static HWY_INLINE void spill(Cell<kKind>& cell) {
    if constexpr (kCell < cells) {
      cell.rest = hn::Add(cell.rest, cell.sum);
      cell.sum = hn::Zero(IntTag());
    }
  }
  template <int kCell>
  HWY_INLINE void finish(Cell<kKind>& cell) const {
    if constexpr (kCell < cells) cell.finish(constants, place<kCell>());
  }
};

/// A tile, block by block.
template <BlockKind kKind, int kFanIn>
class TruncatedTile {
 public:
  explicit TruncatedTile(const UnitTile& tile)
      : tile_(tile),
        plan_(*tile.plan),
        half_plan_(plan_rounding(softfloat::binary16)),
        constants_(plan_, half_plan_),
        lanes_(static_cast<std::int64_t>(float_lanes())),
        width_(4 * lanes_),
        vectors_((tile.columns + lanes_ - 1) / lanes_) {}

  bool run() {
    const std::int64_t total = padded_terms(plan_, tile_.terms);
    for (std::int64_t k = 0; k < total; k += kFanIn) {
      if (plan_.addend_last && k % plan_.instruction == 0) set_addends_aside();
      run_block(k);
      if (plan_.addend_last && (k + kFanIn) % plan_.instruction == 0) add_addends();
    }
    return mark();
  }

 private:
  void run_block(std::int64_t first) {
    const BlockReader reader(tile_);
    const float* b = block_;
    std::int64_t stride = width_;
    const bool in_place = !tile_.b_transposed && !plan_.converts_operands &&
                          plan_.order == OperandOrder::in_turn && tile_.columns == width_ &&
                          first + kFanIn <= tile_.terms;
    if (in_place) {
      b = tile_.b + first * tile_.b_stride;
      stride = tile_.b_stride;
    } else {
      reader.copy(first, kFanIn, block_, width_);
    }
    constexpr int groups = kFanIn / 4;
    bool has_tiny = false;
    for (std::int64_t v = 0; v < vectors_; ++v) {
      pack_exponents<kKind>(plan_, b + v * lanes_, stride, groups,
                            codes_ + v * most_groups * code_bytes, ranges_[v]);
    }
    if constexpr (kKind == BlockKind::wide) {
      const hn::RebindToUnsigned<FloatTag> du;
      for (std::int64_t v = 0; v < vectors_; ++v) {
        const auto smallest = hn::GetLane(hn::MinOfLanes(du, ranges_[v].smallest));
        has_tiny |= smallest < static_cast<std::uint32_t>(exponent_field(bias + tiny_exponent));
      }
    }
    std::int64_t i = 0;
    for (; i + 4 <= tile_.rows; i += 4) {
      for (std::int64_t v = 0; v < vectors_; ++v) step<4, 1>(first, i, v, b, stride, has_tiny);
    }
    for (; i + 2 <= tile_.rows; i += 2) {
      std::int64_t v = 0;
      for (; v + 2 <= vectors_; v += 2) step<2, 2>(first, i, v, b, stride, has_tiny);
      for (; v < vectors_; ++v) {
        step<1, 1>(first, i, v, b, stride, has_tiny);
        step<1, 1>(first, i + 1, v, b, stride, has_tiny);
      }
    }
    for (; i < tile_.rows; ++i) {
      std::int64_t v = 0;
      for (; v + 4 <= vectors_; v += 4) step<1, 4>(first, i, v, b, stride, has_tiny);
      for (; v < vectors_; ++v) step<1, 1>(first, i, v, b, stride, has_tiny);
    }
  }

  template <int kRows, int kVectors>
  HWY_INLINE void step(std::int64_t first, std::int64_t i, std::int64_t v, const float* b,
                       std::int64_t stride, bool has_tiny) {
    const std::int64_t at = i * tile_.a.stride + first;
    BlockStep<kKind, kFanIn, kRows, kVectors>{constants_,
                                              tile_.a.values + at,
                                              tile_.a.codes + at,
                                              tile_.a.stride,
                                              tile_.a.flags + i,
                                              b + v * lanes_,
                                              stride,
                                              codes_ + v * most_groups * code_bytes,
                                              has_tiny,
                                              tile_.sums + i * width_ + v * lanes_,
                                              width_}
        .run();
  }

  void set_addends_aside() {
    std::copy_n(tile_.sums, tile_.rows * width_, tile_.addends);
    std::fill_n(tile_.sums, tile_.rows * width_, 0.0F);
  }

  void add_addends() {
    const FloatTag d;
    for (std::int64_t i = 0; i < tile_.rows * width_; i += lanes_) {
      FloatVector sum = hn::Add(hn::LoadU(d, tile_.addends + i), hn::LoadU(d, tile_.sums + i));
      if (plan_.half_output) sum = constants_.half.round(sum);
      hn::StoreU(sum, d, tile_.sums + i);
    }
  }

  /// NaN in rows and columns that are not for lanes; true where anything is NaN.
  bool mark() {
    const FloatTag d;
    const FloatVector nan = hn::BitCast(d, hn::Set(IntTag(), exponent_field(255) | 1));
    bool any = false;
    for (std::int64_t v = 0; v < vectors_; ++v) {
      const FloatVector bad = bad_columns(ranges_[v].largest);
      for (std::int64_t i = 0; i < tile_.rows; ++i) {
        float* const at = tile_.sums + i * width_ + v * lanes_;
        FloatVector x = hn::Or(hn::LoadU(d, at), bad);
        if (tile_.a.flags[i] == row_is_for_softfloat) x = nan;
        hn::StoreU(x, d, at);
        any |= !hn::AllFalse(d, hn::IsNaN(x));
      }
    }
    return any;
  }

  /// All bits set in the lanes of columns with an infinity, a NaN or a number of 2^37 or more.
  static FloatVector bad_columns(ByteVector largest) {
    const ByteTag d8;
    const IntTag di;
    const ByteVector limit = hn::Set(d8, static_cast<std::uint8_t>(largest_lane_exponent + bias));
    const IntVector above = hn::BitCast(di, hn::SaturatedSub(largest, limit));
    return hn::BitCast(FloatTag(), hn::VecFromMask(di, hn::Ne(above, hn::Zero(di))));
  }

  const UnitTile& tile_;
  const UnitPlan& plan_;
  LanePlan half_plan_;
  BlockConstants constants_;
  std::int64_t lanes_;
  std::int64_t width_;
  std::int64_t vectors_;
  PanelRange ranges_[4];
  HWY_ALIGN std::uint8_t codes_[4 * most_groups * code_bytes];
  HWY_ALIGN float block_[longest_block * most_panel_columns];
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
