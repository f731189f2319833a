// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How units in lanes read b: floats or codes, by rows or by columns. Compiled once per instruction
// set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_READER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_READER_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_READER_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_READER_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/numbers-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// Operands that are copied at once, at most: for a transposed b, a run of every column.
inline constexpr std::int64_t most_copied = 128;

/// Copies runs of operands of all columns of a tile, [operands][panel columns]: converted, in the
/// unit's order, zeros where there is nothing. Infinities and NaN in binary16 codes come out as
/// numbers of 2^16 and more, which UnitPlan::largest_exponent tells apart; as such only for chains.
class BlockReader {
 public:
  explicit BlockReader(const UnitTile& tile) : tile_(tile), plan_(*tile.plan) {
    // Runs begin at whole instructions, so that the order within one is that within each.
    std::iota(place_, place_ + most_copied, std::uint8_t{0});
    if (plan_.order == OperandOrder::in_turn) return;
    for (std::uint8_t i = 0; i < most_copied; ++i) place_[operand_position(plan_, i)] = i;
  }

  /// Operands first … first + count of all columns; first is a multiple of most_copied or of the
  /// operands of an instruction, count a multiple of 4.
  void copy(std::int64_t first, std::int64_t count, float* to, std::int64_t width) const {
    switch (tile_.b.code()) {
      case NumberCode::binary32:
        copy_code<NumberCode::binary32>(first, count, to, width);
        break;
      case NumberCode::bfloat16:
        copy_code<NumberCode::bfloat16>(first, count, to, width);
        break;
      case NumberCode::binary16:
        copy_code<NumberCode::binary16>(first, count, to, width);
        break;
    }
    if (!plan_.converts_operands) return;
    const FloatTag d;
    const auto lanes = static_cast<std::int64_t>(float_lanes());
    for (std::int64_t i = 0; i < count * width; i += lanes) {
      hn::StoreU(to_tf32(plan_, hn::LoadU(d, to + i)), d, to + i);
    }
  }

 private:
  template <NumberCode kCode>
  void copy_code(std::int64_t first, std::int64_t count, float* to, std::int64_t width) const {
    const auto lanes = static_cast<std::int64_t>(float_lanes());
    const std::int64_t terms = std::clamp<std::int64_t>(tile_.terms - first, 0, count);
    if (terms < count || tile_.columns < width) std::fill_n(to, count * width, 0.0F);
    if (tile_.columns < lanes) {
      copy_few<kCode>(first, terms, to, width);
      return;
    }
    // The last vector of columns overlaps the one before it.
    for (std::int64_t j = 0; j < tile_.columns; j += lanes) {
      const std::int64_t column = std::min(j, tile_.columns - lanes);
      if (tile_.b_transposed) {
        if (kCode == NumberCode::binary16 && plan_.path == UnitPath::fused) {
          turn_columns<kCode, true, false>(first, terms, column, to, width);
        } else if (plan_.order == OperandOrder::in_turn && width == panel_width) {
          turn_columns<kCode, false, true>(first, terms, column, to, panel_width);
        } else {
          turn_columns<kCode, false, false>(first, terms, column, to, width);
        }
      } else {
        copy_rows<kCode>(first, terms, column, to, width);
      }
    }
  }

  /// Operand k of column j.
  template <NumberCode kCode>
  [[nodiscard]] const Stored<kCode>* at(std::int64_t k, std::int64_t j) const {
    return stored<kCode>(tile_.b) +
           (tile_.b_transposed ? j * tile_.b_stride + k : k * tile_.b_stride + j);
  }

  template <NumberCode kCode>
  void copy_few(std::int64_t first, std::int64_t terms, float* to, std::int64_t width) const {
    for (std::int64_t k = 0; k < terms; ++k) {
      for (std::int64_t j = 0; j < tile_.columns; ++j) {
        const NumberPointer number(kCode, at<kCode>(first + k, j));
        to[place_[k] * width + j] = number[0];
      }
    }
  }

  template <NumberCode kCode>
  void copy_rows(std::int64_t first, std::int64_t terms, std::int64_t column, float* to,
                 std::int64_t width) const {
    for (std::int64_t k = 0; k < terms; ++k) {
      const FloatVector x = load_numbers<kCode>(at<kCode>(first + k, column));
      hn::StoreU(x, FloatTag(), to + place_[k] * width + column);
    }
  }

  /// kInTurn: operands stay where they are, so that their places are constants.
  template <NumberCode kCode, bool kSpecials, bool kInTurn>
  KVSIM_INLINE void turn_columns(std::int64_t first, std::int64_t terms, std::int64_t column,
                                 float* to, std::int64_t width) const {
    constexpr std::int64_t step = numbers_at_once<kCode>;
    const auto lanes = static_cast<std::int64_t>(float_lanes());
    const bool more = column + 2 * lanes <= tile_.columns;
    const Stored<kCode>* const from = at<kCode>(first, column);
    std::int64_t k = 0;
    for (; k + step <= terms; k += step) {
      if (more && k % numbers_per_line<kCode> == 0) {
        for (std::int64_t j = lanes; j < 2 * lanes; ++j) {
          hwy::Prefetch(from + j * tile_.b_stride + k);
        }
      }
      float* const block = to + k * width + column;
      transpose_numbers<kCode, kSpecials>(
          from + k, tile_.b_stride, [&](std::int64_t i, FloatVector x) HWY_ATTR {
            float* const row = kInTurn ? block + i * width : to + place_[k + i] * width + column;
            hn::StoreU(x, FloatTag(), row);
          });
    }
    for (; k < terms; ++k) {
      for (std::int64_t j = 0; j < lanes; ++j) {
        const NumberPointer number(kCode, from + j * tile_.b_stride + k);
        to[place_[k] * width + column + j] = number[0];
      }
    }
  }

  template <NumberCode kCode>
  static constexpr std::int64_t numbers_per_line = 4 * numbers_at_once<kCode>;

  static constexpr auto panel_width = static_cast<std::int64_t>(4 * hn::MaxLanes(FloatTag()));

  const UnitTile& tile_;
  const UnitPlan& plan_;
  std::uint8_t place_[most_copied];  ///< of an operand of a run in the unit's order
};

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
