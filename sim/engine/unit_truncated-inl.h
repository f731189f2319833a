// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Tiles of T-FDPA and TR-FDPA in float lanes. Compiled once per instruction set: the guard flips.
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
#include <type_traits>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_cell-inl.h"
#include "sim/engine/unit_down_cell-inl.h"
#include "sim/engine/unit_exponents-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"
#include "sim/engine/unit_reader-inl.h"
#include "softfloat/formats.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

template <BlockKind kKind>
using CellOf = std::conditional_t<kKind == BlockKind::down_narrow || kKind == BlockKind::down_wide,
                                  DownCell<kKind>, Cell<kKind>>;

/// Memory to fetch into the second cache, a line for each product.
struct Ahead {
  static constexpr std::int64_t bytes_per_line = 64;
  const std::byte* from;
  std::int64_t step;
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
  Ahead ahead;

  KVSIM_INLINE void run() const {
    CellOf<kKind> c0, c1, c2, c3;
    start<0>(c0);
    start<1>(c1);
    start<2>(c2);
    start<3>(c3);
    constexpr int group = kFanIn < 16 ? kFanIn : 16;  // products that one sum has room for
    add_group<group>(c0, c1, c2, c3, 0);
    if constexpr (kFanIn > group) {  // never in units that round down
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
  HWY_INLINE void start(CellOf<kKind>& cell) const {
    if constexpr (kCell < cells) {
      constexpr int row = kCell / kVectors;
      const IntVector code = largest_code<kFanIn / 4>(
          a_codes + row * a_stride, b_codes + kCell % kVectors * most_groups * code_bytes);
      const bool tiny =
          has_wide_exponents(kKind) && (b_has_tiny || a_flags[row] == row_has_tiny_numbers);
      cell.start(constants, place<kCell>(), code, tiny);
    }
  }
  template <int kCount>
  HWY_INLINE void add_group(CellOf<kKind>& c0, CellOf<kKind>& c1, CellOf<kKind>& c2,
                            CellOf<kKind>& c3, std::int64_t first) const {
    const std::int64_t lanes = static_cast<std::int64_t>(float_lanes());
    const float* row = b + first * b_stride;
    KVSIM_UNROLL(4)
    for (std::int64_t k = first; k < first + kCount; ++k, row += b_stride) {
      __builtin_prefetch(ahead.from + k * ahead.step, 0, 2);
      add<0>(c0, k, row, lanes);
      add<1>(c1, k, row, lanes);
      add<2>(c2, k, row, lanes);
      add<3>(c3, k, row, lanes);
    }
  }
  template <int kCell>
  HWY_INLINE void add(CellOf<kKind>& cell, std::int64_t k, const float* row,
                      std::int64_t lanes) const {
    if constexpr (kCell < cells) {
      const FloatTag d;
      const FloatVector x = hn::Set(d, a[kCell / kVectors * a_stride + k]);
      const FloatVector product = hn::Mul(x, hn::LoadU(d, row + kCell % kVectors * lanes));
      cell.sum = hn::Add(cell.sum, truncate(cell.scaled(product)));
    }
  }
  template <int kCell>
  static HWY_INLINE void spill(CellOf<kKind>& cell) {
    if constexpr (kCell < cells) cell.spill();
  }
  template <int kCell>
  HWY_INLINE void finish(CellOf<kKind>& cell) const {
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
        reader_(tile),
        half_plan_(plan_rounding(softfloat::binary16)),
        constants_(plan_, half_plan_),
        lanes_(static_cast<std::int64_t>(float_lanes())),
        width_(4 * lanes_),
        vectors_((tile.columns + lanes_ - 1) / lanes_) {}

  bool run() {
    const std::int64_t total = padded_terms(plan_, tile_.terms);
    const float* const floats = tile_.b.floats();
    const bool in_place = floats != nullptr && !tile_.b_transposed && !plan_.converts_operands &&
                          plan_.order == OperandOrder::in_turn && tile_.columns == width_;
    // Longer runs of codes would not leave the first cache as it is.
    const std::int64_t run = floats == nullptr ? most_copied / 2 : most_copied;
    std::int64_t copied = 0;  // operands before this one have been in copy_
    for (std::int64_t k = 0; k < total; k += kFanIn) {
      const float* b = floats;
      std::int64_t stride = tile_.b_stride;
      if (in_place && k + kFanIn <= tile_.terms) {
        b += k * stride;
      } else {
        if (k >= copied) {
          const std::int64_t count = std::min(run, total - k);
          reader_.copy(k, count, copy_, width_);
          first_copied_ = k;
          copied = k + count;
        }
        b = copy_ + (k - first_copied_) * width_;
        stride = width_;
      }
      if (plan_.addend_last && k % plan_.instruction == 0) set_addends_aside();
      run_block(k, b, stride);
      if (plan_.addend_last && (k + kFanIn) % plan_.instruction == 0) add_addends();
    }
    return mark();
  }

 private:
  /// Where the next step fetches what is read next, a line for each product: many at once would
  /// wait for each other. Without anything to fetch, a place that is in the cache.
  Ahead ahead() {
    constexpr std::size_t bytes = kFanIn * Ahead::bytes_per_line;
    if (fetched_ + bytes > tile_.read_next.size()) {
      return {reinterpret_cast<const std::byte*>(copy_), 0};
    }
    const std::byte* const from = tile_.read_next.data() + fetched_;
    fetched_ += bytes;
    return {from, Ahead::bytes_per_line};
  }

  void run_block(std::int64_t first, const float* b, std::int64_t stride) {
    constexpr int groups = kFanIn / 4;
    bool has_tiny = false;
    for (std::int64_t v = 0; v < vectors_; ++v) {
      pack_exponents<kKind>(plan_, b + v * lanes_, stride, groups,
                            codes_ + v * most_groups * code_bytes, ranges_[v]);
    }
    if constexpr (has_wide_exponents(kKind)) {
      const hn::RebindToUnsigned<FloatTag> du;
      for (std::int64_t v = 0; v < vectors_; ++v) {
        const auto smallest = hn::GetLane(hn::MinOfLanes(du, ranges_[v].smallest));
        has_tiny |= smallest < static_cast<std::uint32_t>(exponent_field(bias + tiny_exponent));
      }
    }
    std::int64_t i = 0;
    for (; i + 4 <= tile_.rows; i += 4) {
      for (std::int64_t v = 0; v < vectors_; ++v) {
        step<4, 1>(first, i, v, b, stride, has_tiny);
      }
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
  KVSIM_INLINE void step(std::int64_t first, std::int64_t i, std::int64_t v, const float* b,
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
                                              width_,
                                              ahead()}
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

  /// All bits set in the lanes of columns with a larger exponent than lanes take.
  [[nodiscard]] FloatVector bad_columns(ByteVector largest) const {
    const ByteTag d8;
    const IntTag di;
    const ByteVector limit = hn::Set(d8, static_cast<std::uint8_t>(plan_.largest_exponent + bias));
    const IntVector above = hn::BitCast(di, hn::SaturatedSub(largest, limit));
    return hn::BitCast(FloatTag(), hn::VecFromMask(di, hn::Ne(above, hn::Zero(di))));
  }

  const UnitTile& tile_;
  const UnitPlan& plan_;
  BlockReader reader_;
  LanePlan half_plan_;
  BlockConstants constants_;
  std::int64_t lanes_;
  std::int64_t width_;
  std::int64_t vectors_;
  PanelRange ranges_[4];
  HWY_ALIGN std::uint8_t codes_[4 * most_groups * code_bytes];
  std::int64_t first_copied_ = 0;
  std::size_t fetched_ = 0;  ///< bytes of tile_.read_next
  HWY_ALIGN float copy_[most_copied * most_panel_columns];
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
