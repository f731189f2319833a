// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/panel.cc"
#include "sim/engine/panel.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "sim/engine/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

template <NumberCode kCode>
void read_row(NumberPointer from, std::int64_t count, float* to) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Stored<kCode>* const numbers = stored<kCode>(from);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(load_numbers<kCode>(numbers + i), d, to + i);
  }
  for (; i < count; ++i) to[i] = from[i];
}

/// Columns first … first + lanes − 1, all rows.
template <NumberCode kCode>
void turn_columns(const PanelSource& from, std::int64_t first, float* to, std::int64_t to_stride) {
  const auto at = [&](std::int64_t k, std::int64_t j) {
    return from.numbers + ((from.first_column + first + j) * from.stride + from.first_row + k);
  };
  const FloatTag d;
  std::int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t step = numbers_at_once<kCode>;
  for (; k + step <= from.rows; k += step) {
    transpose_numbers<kCode, true>(stored<kCode>(at(k, 0)), from.stride,
                                   [&](std::int64_t i, FloatVector x) HWY_ATTR {
                                     hn::StoreU(x, d, to + (k + i) * to_stride + first);
                                   });
  }
#endif
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; k < from.rows; ++k) {
    for (std::int64_t j = 0; j < lanes; ++j) to[k * to_stride + first + j] = at(k, j)[0];
  }
}

template <NumberCode kCode>
void copy_panel_of(const PanelSource& from, float* to, std::int64_t to_stride) {
  if (!from.transposed) {
    for (std::int64_t k = 0; k < from.rows; ++k) {
      const std::int64_t at = (from.first_row + k) * from.stride + from.first_column;
      read_row<kCode>(from.numbers + at, from.columns, to + k * to_stride);
    }
    return;
  }
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(FloatTag()));
  std::int64_t j = 0;
  for (; j + lanes <= from.columns; j += lanes) turn_columns<kCode>(from, j, to, to_stride);
  for (; j < from.columns; ++j) {
    const NumberPointer column =
        from.numbers + ((from.first_column + j) * from.stride + from.first_row);
    for (std::int64_t k = 0; k < from.rows; ++k) to[k * to_stride + j] = column[k];
  }
}

inline void read(NumberPointer from, std::int64_t count, float* to) {
  switch (from.code()) {
    case NumberCode::binary32:
      return read_row<NumberCode::binary32>(from, count, to);
    case NumberCode::bfloat16:
      return read_row<NumberCode::bfloat16>(from, count, to);
    case NumberCode::binary16:
      return read_row<NumberCode::binary16>(from, count, to);
  }
}

inline void copy(const PanelSource& from, float* to, std::int64_t to_stride) {
  switch (from.numbers.code()) {
    case NumberCode::binary32:
      return copy_panel_of<NumberCode::binary32>(from, to, to_stride);
    case NumberCode::bfloat16:
      return copy_panel_of<NumberCode::bfloat16>(from, to, to_stride);
    case NumberCode::binary16:
      return copy_panel_of<NumberCode::binary16>(from, to, to_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

void read_numbers(NumberPointer from, std::int64_t count, float* to, SimdLevel level) {
  constexpr LevelFunctions<void (*)(NumberPointer, std::int64_t, float*)> kernels
      KVSIM_AT_EACH_LEVEL(read);
  function_or_scalar(level, kernels)(from, count, to);
}

void copy_panel(const PanelSource& from, float* to, std::int64_t to_stride, SimdLevel level) {
  constexpr LevelFunctions<void (*)(const PanelSource&, float*, std::int64_t)> kernels
      KVSIM_AT_EACH_LEVEL(copy);
  function_or_scalar(level, kernels)(from, to, to_stride);
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
