// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set; see column_kernel.cc for the settings.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/binary64_matrix.cc"
#include "sim/engine/binary64_matrix.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/panel.h"
#include "sim/parallel.h"

#ifndef KVSIM_SIM_ENGINE_BINARY64_MATRIX_ONCE
#define KVSIM_SIM_ENGINE_BINARY64_MATRIX_ONCE
namespace kvsim::engine {

inline constexpr std::int64_t panel_columns = 64;  // of w, packed at once
inline constexpr std::int64_t panel_terms = 512;   // a multiple of binary64_block
inline constexpr std::int64_t panel_rows = 4;      // of x, that share the loads of w

/// Columns `begin` to `begin` + panel_columns − 1 (or fewer) of the result.
struct Binary64Panel {
  const Binary64Problem* problem = nullptr;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  double* out = nullptr;     ///< of the whole result
  double* packed = nullptr;  ///< panel_terms × panel_columns
  float* read = nullptr;     ///< the same room, before it is packed
  SimdLevel level = SimdLevel::scalar;
  double* totals = nullptr;  ///< rows × panel_columns, and one row more for the squares
};

}  // namespace kvsim::engine
#endif

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Wide = hn::ScalableTag<double>;
using V = hn::Vec<Wide>;

/// totals[r][0 … 2 vectors) += block sums, kRows rows of x at once.
template <int kRows>
HWY_INLINE void add_blocks(const double* const* x, const double* packed, std::int64_t terms,
                           double* totals) {
  const Wide d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::int64_t begin = 0; begin < terms; begin += binary64_block) {
    const std::int64_t end = std::min(terms, begin + binary64_block);
    V low[kRows];
    V high[kRows];
    for (int r = 0; r < kRows; ++r) low[r] = high[r] = hn::Zero(d);
    for (std::int64_t k = begin; k < end; ++k) {
      const V w_low = hn::LoadU(d, packed + k * panel_columns);
      const V w_high = hn::LoadU(d, packed + k * panel_columns + lanes);
      for (int r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, x[r][k]);
        low[r] = hn::Add(low[r], hn::Mul(factor, w_low));
        high[r] = hn::Add(high[r], hn::Mul(factor, w_high));
      }
    }
    for (int r = 0; r < kRows; ++r) {
      double* total = totals + r * panel_columns;
      hn::StoreU(hn::Add(hn::LoadU(d, total), low[r]), d, total);
      hn::StoreU(hn::Add(hn::LoadU(d, total + lanes), high[r]), d, total + lanes);
    }
  }
}

HWY_INLINE void add_rows(int rows, const double* const* x, const double* packed, std::int64_t terms,
                         double* totals) {
  switch (rows) {
    case 1:
      return add_blocks<1>(x, packed, terms, totals);
    case 2:
      return add_blocks<2>(x, packed, terms, totals);
    case 3:
      return add_blocks<3>(x, packed, terms, totals);
    default:
      return add_blocks<4>(x, packed, terms, totals);
  }
}

/// Σ w² of the packed terms, in the same blocks.
HWY_INLINE void add_squares(const double* packed, std::int64_t terms, double* totals) {
  const Wide d;
  for (std::int64_t begin = 0; begin < terms; begin += binary64_block) {
    const std::int64_t end = std::min(terms, begin + binary64_block);
    V sum = hn::Zero(d);
    for (std::int64_t k = begin; k < end; ++k) {
      const V w = hn::LoadU(d, packed + k * panel_columns);
      sum = hn::Add(sum, hn::Mul(w, w));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, totals), sum), d, totals);
  }
}

inline void multiply_panel(const Binary64Panel& panel) {
  const Binary64Problem& problem = *panel.problem;
  const auto step = static_cast<std::int64_t>(hn::Lanes(Wide()));
  std::fill_n(panel.totals, (problem.rows + 1) * panel_columns, 0.0);
  for (std::int64_t first = 0; first < problem.terms; first += panel_terms) {
    const std::int64_t terms = std::min(panel_terms, problem.terms - first);
    copy_panel({.numbers = problem.w,
                .stride = problem.w_stride,
                .transposed = problem.w_transposed,
                .first_row = first,
                .rows = terms,
                .first_column = panel.begin,
                .columns = panel.count},
               panel.read, panel_columns, panel.level);
    for (std::int64_t k = 0; k < terms; ++k) {
      double* to = panel.packed + k * panel_columns;
      std::copy_n(panel.read + k * panel_columns, panel.count, to);
      std::fill(to + panel.count, to + panel_columns, 0.0);
    }
    for (std::int64_t j = 0; j < panel.count; j += 2 * step) {
      for (std::int64_t i = 0; i < problem.rows; i += panel_rows) {
        const int rows = static_cast<int>(std::min(panel_rows, problem.rows - i));
        const double* x[panel_rows] = {};
        for (int r = 0; r < rows; ++r) x[r] = problem.x + (i + r) * problem.terms + first;
        add_rows(rows, x, panel.packed + j, terms, panel.totals + i * panel_columns + j);
      }
    }
    if (problem.squares != nullptr) {
      double* squares = panel.totals + problem.rows * panel_columns;
      for (std::int64_t j = 0; j < panel.count; j += step) {
        add_squares(panel.packed + j, terms, squares + j);
      }
    }
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    std::copy_n(panel.totals + i * panel_columns, panel.count,
                panel.out + i * problem.columns + panel.begin);
  }
  if (problem.squares != nullptr) {
    std::copy_n(panel.totals + problem.rows * panel_columns, panel.count,
                problem.squares + panel.begin);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {
namespace {

using PanelKernel = void (*)(const Binary64Panel&);

PanelKernel panel_kernel(SimdLevel level) {
  constexpr LevelFunctions<PanelKernel> kernels KVSIM_AT_EACH_LEVEL(multiply_panel);
  return function_or_scalar(level, kernels);
}

}  // namespace
}  // namespace kvsim::engine

namespace kvsim {

void multiply_binary64(const Binary64Problem& problem, double* out, const EngineOptions& options) {
  const engine::PanelKernel kernel = engine::panel_kernel(options.level);
  const std::int64_t panels = (problem.columns + engine::panel_columns - 1) / engine::panel_columns;
  parallel_for(panels, options.threads, [&](std::int64_t i) {
    thread_local std::vector<double> scratch;
    const std::int64_t packed = engine::panel_terms * engine::panel_columns;
    scratch.resize(static_cast<std::size_t>(packed + (problem.rows + 1) * engine::panel_columns));
    thread_local std::vector<float> read;
    read.resize(static_cast<std::size_t>(packed));
    const std::int64_t begin = i * engine::panel_columns;
    kernel({.problem = &problem,
            .begin = begin,
            .count = std::min(engine::panel_columns, problem.columns - begin),
            .out = out,
            .packed = scratch.data(),
            .read = read.data(),
            .level = options.level,
            .totals = scratch.data() + packed});
  });
}

}  // namespace kvsim
#endif  // HWY_ONCE
