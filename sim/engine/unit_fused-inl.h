// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Chains of fused multiply-adds in float lanes, a column of b in each. Compiled once per
// instruction set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_FUSED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_FUSED_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_FUSED_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_FUSED_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"
#include "sim/engine/unit_reader-inl.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// A tile of a binary32 chain. The lanes' own arithmetic is the unit's, but for units that flush
/// subnormal results: where one may appear, kChecked, it makes its element NaN, for softfloat.
template <bool kChecked>
struct FusedSteps {
  const float* a;
  std::int64_t a_stride;
  const float* b;
  std::int64_t b_stride;
  float* sums;
  std::int64_t width;
  std::int64_t count;

  template <int kRows, int kVectors>
  HWY_NOINLINE void run() const {
    const FloatTag d;
    const FloatLanes<RoundBinary32> lanes{LanePlan()};
    const auto step = static_cast<std::int64_t>(float_lanes());
    FloatVector sum[kRows][kVectors];
    KVSIM_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      KVSIM_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::LoadU(d, sums + r * width + v * step);
    }
    for (std::int64_t k = 0; k < count; ++k) {
      KVSIM_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const FloatVector x = hn::Set(d, a[r * a_stride + k]);
        KVSIM_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) {
          const FloatVector y = hn::LoadU(d, b + k * b_stride + v * step);
          sum[r][v] = checked(lanes.fused(sum[r][v], x, y));
        }
      }
    }
    KVSIM_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      KVSIM_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, sums + r * width + v * step);
    }
  }

 private:
  /// NaN instead of 0 < |x| ≤ 2^−126: what is flushed, or was rounded up from there.
  static HWY_INLINE FloatVector checked(FloatVector x) {
    if constexpr (!kChecked) return x;
    const FloatTag d;
    const IntTag di;
    const IntVector magnitude = hn::And(hn::BitCast(di, x), hn::Set(di, magnitude_mask));
    // Zero becomes −1 and is not positive.
    const IntVector less_one = hn::Sub(magnitude, hn::Set(di, 1));
    const auto tiny = hn::And(hn::Lt(less_one, hn::Set(di, exponent_field(1))),
                              hn::Gt(less_one, hn::Set(di, -1)));
    return hn::Or(x, hn::BitCast(d, hn::VecFromMask(di, tiny)));
  }
};

class FusedTile {
 public:
  explicit FusedTile(const UnitTile& tile)
      : tile_(tile),
        plan_(*tile.plan),
        reader_(tile),
        lanes_(static_cast<std::int64_t>(float_lanes())),
        width_(4 * lanes_) {}

  bool run() {
    const std::int64_t total = padded_terms(plan_, tile_.terms);
    for (std::int64_t k = 0; k < total; k += longest_block) {
      run_block(k, std::min(longest_block, total - k));
    }
    const FloatTag d;
    bool any = false;
    for (std::int64_t i = 0; i < tile_.rows * width_; i += lanes_) {
      any |= !hn::AllFalse(d, hn::IsNaN(hn::LoadU(d, tile_.sums + i)));
    }
    return any;
  }

 private:
  void run_block(std::int64_t first, std::int64_t count) {
    const float* b = block_;
    std::int64_t stride = width_;
    bool has_tiny = false;
    if (tile_.b.floats() != nullptr && !tile_.b_transposed && !plan_.flushes_subnormals &&
        !plan_.converts_operands && plan_.order == OperandOrder::in_turn &&
        tile_.columns == width_ && first + count <= tile_.terms) {
      b = tile_.b.floats() + first * tile_.b_stride;
      stride = tile_.b_stride;
    } else {
      const std::int64_t whole = (count + 3) / 4 * 4;  // zeros behind the end are not used
      reader_.copy(first, whole, block_, width_);
      if (plan_.flushes_subnormals) has_tiny = flush(whole);
    }
    const auto rows = [&](std::int64_t i, std::int64_t v) {
      const std::int64_t at = i * tile_.a.stride + first;
      return FusedSteps<false>{tile_.a.values + at,
                               tile_.a.stride,
                               b + v * lanes_,
                               stride,
                               tile_.sums + i * width_ + v * lanes_,
                               width_,
                               count};
    };
    std::int64_t i = 0;
    for (; i + 4 <= tile_.rows; i += 4) {
      const bool checked = plan_.flushes_subnormals && (has_tiny || any_tiny(i, 4));
      for (std::int64_t v = 0; v < 4; v += 2) run_steps<4, 2>(rows(i, v), checked);
    }
    for (; i < tile_.rows; ++i) {
      const bool checked = plan_.flushes_subnormals && (has_tiny || any_tiny(i, 1));
      run_steps<1, 4>(rows(i, 0), checked);
    }
  }

  template <int kRows, int kVectors>
  static void run_steps(const FusedSteps<false>& s, bool checked) {
    if (checked) {
      FusedSteps<true>{s.a, s.a_stride, s.b, s.b_stride, s.sums, s.width, s.count}
          .run<kRows, kVectors>();
    } else {
      s.run<kRows, kVectors>();
    }
  }

  [[nodiscard]] bool any_tiny(std::int64_t first, std::int64_t count) const {
    return std::any_of(tile_.a.flags + first, tile_.a.flags + first + count,
                       [](std::uint8_t flag) { return flag != row_is_tame; });
  }

  /// Makes subnormals of the block zeros; true where a number lies below 2^tiny_exponent.
  bool flush(std::int64_t count) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    auto smallest = hn::Set(du, UINT32_MAX);
    for (std::int64_t i = 0; i < count * width_; i += lanes_) {
      const FloatVector x = flushed(hn::LoadU(d, block_ + i));
      hn::StoreU(x, d, block_ + i);
      smallest =
          hn::Min(smallest, hn::Sub(hn::BitCast(du, hn::Abs(x)), hn::Set(du, 1U)));  // zero: most
    }
    return hn::GetLane(hn::MinOfLanes(du, smallest)) <
           static_cast<std::uint32_t>(exponent_field(bias + tiny_exponent));
  }

  const UnitTile& tile_;
  const UnitPlan& plan_;
  BlockReader reader_;
  std::int64_t lanes_;
  std::int64_t width_;
  HWY_ALIGN float block_[longest_block * most_panel_columns];
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
