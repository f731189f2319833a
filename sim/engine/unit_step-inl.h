// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// One block of a few vectors of elements of T-FDPA or TR-FDPA. Compiled once per instruction set:
// the guard flips.
#if defined(KVSIM_SIM_ENGINE_UNIT_STEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_UNIT_STEP_INL_H
#undef KVSIM_SIM_ENGINE_UNIT_STEP_INL_H
#else
#define KVSIM_SIM_ENGINE_UNIT_STEP_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sim/engine/lanes-inl.h"
#include "sim/engine/numbers-inl.h"
#include "sim/engine/unit_cell-inl.h"
#include "sim/engine/unit_down_cell-inl.h"
#include "sim/engine/unit_exponents-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_kernel.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

template <BlockKind kKind>
using CellOf = std::conditional_t<kKind == BlockKind::down_narrow || kKind == BlockKind::down_wide,
                                  DownCell<kKind>, Cell<kKind>>;

/// Memory to fetch, `step` bytes further with each product.
struct Ahead {
  static constexpr std::int64_t bytes_per_line = 64;
  const std::byte* from;
  std::int64_t step;
};

/// One block of kRows × kVectors vectors of elements, of a b that is stored as kCode.
template <BlockKind kKind, NumberCode kCode, int kFanIn, int kRows, int kVectors>
struct BlockStep {
  const BlockConstants& constants;
  const float* a;               ///< the block's first operand in the first row
  const std::uint8_t* a_codes;  ///< the same place
  std::int64_t a_stride;
  const std::uint8_t* a_flags;
  const Stored<kCode>* b;  ///< first row and column
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
    const Stored<kCode>* row = b + first * b_stride;
    KVSIM_UNROLL(4)
    for (std::int64_t k = first; k < first + kCount; ++k, row += b_stride) {
      if (k % 2 == 0 || ahead.step > Ahead::bytes_per_line / 2) {
        __builtin_prefetch(ahead.from + k * ahead.step);
      }
      add<0>(c0, k, row, lanes);
      add<1>(c1, k, row, lanes);
      add<2>(c2, k, row, lanes);
      add<3>(c3, k, row, lanes);
    }
  }
  template <int kCell>
  HWY_INLINE void add(CellOf<kKind>& cell, std::int64_t k, const Stored<kCode>* row,
                      std::int64_t lanes) const {
    if constexpr (kCell < cells) {
      const FloatTag d;
      const FloatVector x = hn::Set(d, a[kCell / kVectors * a_stride + k]);
      const FloatVector y = load_numbers<kCode>(row + kCell % kVectors * lanes);
      const FloatVector product = hn::Mul(x, y);
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

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif
