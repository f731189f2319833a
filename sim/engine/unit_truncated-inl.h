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

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_cell-inl.h"
#include "sim/engine/unit_exponents-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"
#include "sim/engine/unit_reader-inl.h"
#include "sim/engine/unit_step-inl.h"
#include "softfloat/formats.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// A tile, block by block.
template <BlockKind kKind, int kFanIn>
class TruncatedTile {
 public:
  explicit TruncatedTile(const UnitTile& tile)
      : tile_(tile),
        plan_(*tile.plan),
        reader_(tile),
        half_plan_(plan_.half_output ? plan_rounding(softfloat::binary16) : LanePlan()),
        constants_(plan_, half_plan_),
        lanes_(static_cast<std::int64_t>(float_lanes())),
        width_(4 * lanes_),
        vectors_((tile.columns + lanes_ - 1) / lanes_) {}

  bool run() {
    plan_fetches();
    if (codes_in_place()) {
      run_blocks<code_of_kind>(stored<code_of_kind>(tile_.b));
    } else {
      run_blocks<NumberCode::binary32>(tile_.b.floats());
    }
    return mark();
  }

 private:
  /// The codes of the operands of units of this kind.
  static constexpr NumberCode code_of_kind =
      kKind == BlockKind::wide                                       ? NumberCode::bfloat16
      : has_wide_exponents(kKind) || kKind == BlockKind::down_narrow ? NumberCode::binary32
                                                                     : NumberCode::binary16;

  /// Whether lanes read b where it is.
  [[nodiscard]] bool in_place() const {
    return !tile_.b_transposed && !plan_.converts_operands &&
           plan_.order == OperandOrder::in_turn && tile_.columns % lanes_ == 0;
  }
  /// More rows than one step has would convert every code again.
  [[nodiscard]] bool codes_in_place() const {
    constexpr std::int64_t few_rows = 4;
    return tile_.b.code() == code_of_kind && in_place() && tile_.rows <= few_rows;
  }

  /// All blocks: of b where it is, or, where `b` is null or a block is not whole, of a copy.
  template <NumberCode kCode>
  void run_blocks(const Stored<kCode>* b) {
    const std::int64_t total = padded_terms(plan_, tile_.terms);
    // Longer runs of codes would not leave the first cache as it is.
    const std::int64_t run = tile_.b.code() == NumberCode::binary32 ? most_copied : most_copied / 2;
    const bool reads_in_place = b != nullptr && in_place();
    std::int64_t copied = 0;  // operands before this one have been in copy_
    for (std::int64_t k = 0; k < total; k += kFanIn) {
      if (plan_.addend_last && k % plan_.instruction == 0) set_addends_aside();
      if (reads_in_place && k + kFanIn <= tile_.terms) {
        run_block<kCode>(k, b + k * tile_.b_stride, tile_.b_stride);
      } else {
        if (k >= copied) {
          const std::int64_t count = std::min(run, total - k);
          reader_.copy(k, count, copy_, width_);
          first_copied_ = k;
          copied = k + count;
        }
        run_block<NumberCode::binary32>(k, copy_ + (k - first_copied_) * width_, width_);
      }
      if (plan_.addend_last && (k + kFanIn) % plan_.instruction == 0) add_addends();
    }
  }

  /// What is read next is fetched a little with every product: many lines at once would wait for
  /// each other.
  void plan_fetches() {
    const std::int64_t steps[] = {0, (vectors_ + 3) / 4, (vectors_ + 1) / 2, vectors_};
    const std::int64_t steps_of_block = tile_.rows / 4 * vectors_ + steps[tile_.rows % 4];
    const std::int64_t products = padded_terms(plan_, tile_.terms) * steps_of_block;
    const auto bytes = static_cast<std::int64_t>(tile_.read_next.size());
    fetch_step_ = std::min((bytes + products - 1) / products, Ahead::bytes_per_line);
  }

  /// Where the next step fetches what is read next. Without anything to fetch, a place that is in
  /// the cache.
  Ahead ahead() {
    const auto bytes = static_cast<std::size_t>(kFanIn * fetch_step_);
    if (bytes == 0 || fetched_ + bytes > tile_.read_next.size()) {
      return {reinterpret_cast<const std::byte*>(copy_), 0};
    }
    const std::byte* const from = tile_.read_next.data() + fetched_;
    fetched_ += bytes;
    return {from, fetch_step_};
  }

  template <NumberCode kCode>
  void run_block(std::int64_t first, const Stored<kCode>* b, std::int64_t stride) {
    constexpr int groups = kFanIn / 4;
    bool has_tiny = false;
    for (std::int64_t v = 0; v < vectors_; ++v) {
      pack_exponents<kKind, kCode>(plan_, b + v * lanes_, stride, groups,
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
        step<4, 1, kCode>(first, i, v, b, stride, has_tiny);
      }
    }
    if (i + 3 == tile_.rows) {
      for (std::int64_t v = 0; v < vectors_; ++v) {
        step<3, 1, kCode>(first, i, v, b, stride, has_tiny);
      }
      return;
    }
    for (; i + 2 <= tile_.rows; i += 2) {
      std::int64_t v = 0;
      for (; v + 2 <= vectors_; v += 2) step<2, 2, kCode>(first, i, v, b, stride, has_tiny);
      for (; v < vectors_; ++v) {
        step<1, 1, kCode>(first, i, v, b, stride, has_tiny);
        step<1, 1, kCode>(first, i + 1, v, b, stride, has_tiny);
      }
    }
    for (; i < tile_.rows; ++i) {
      std::int64_t v = 0;
      for (; v + 4 <= vectors_; v += 4) step<1, 4, kCode>(first, i, v, b, stride, has_tiny);
      for (; v < vectors_; ++v) step<1, 1, kCode>(first, i, v, b, stride, has_tiny);
    }
  }

  template <int kRows, int kVectors, NumberCode kCode>
  KVSIM_INLINE void step(std::int64_t first, std::int64_t i, std::int64_t v, const Stored<kCode>* b,
                         std::int64_t stride, bool has_tiny) {
    const std::int64_t at = i * tile_.a.stride + first;
    BlockStep<kKind, kCode, kFanIn, kRows, kVectors>{constants_,
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
  std::int64_t fetch_step_ = 0;  ///< bytes of tile_.read_next for each product
  std::size_t fetched_ = 0;      ///< bytes of tile_.read_next
  HWY_ALIGN float copy_[most_copied * most_panel_columns];
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
