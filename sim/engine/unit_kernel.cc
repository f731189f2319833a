// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/unit_kernel.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "sim/engine/unit_fused-inl.h"
#include "sim/engine/unit_kernel-inl.h"
#include "sim/engine/unit_truncated-inl.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

template <BlockKind kKind>
bool run_kind(const UnitTile& tile) {
  switch (tile.plan->fan_in) {
    case 4:
      return TruncatedTile<kKind, 4>(tile).run();
    case 8:
      return TruncatedTile<kKind, 8>(tile).run();
    case 16:
      return TruncatedTile<kKind, 16>(tile).run();
    default:
      return TruncatedTile<kKind, 32>(tile).run();
  }
}

template <BlockKind kKind>
bool run_down(const UnitTile& tile) {
  return tile.plan->fan_in == 4 ? TruncatedTile<kKind, 4>(tile).run()
                                : TruncatedTile<kKind, 8>(tile).run();
}

inline bool run_tile(const UnitTile& tile) {
  if (tile.plan->path == UnitPath::fused) return FusedTile(tile).run();
  if (tile.plan->path == UnitPath::rounded_down) {
    return tile.plan->wide_exponents ? run_down<BlockKind::down_wide>(tile)
                                     : run_down<BlockKind::down_narrow>(tile);
  }
  if (tile.plan->half_output) return run_kind<BlockKind::narrow_half>(tile);
  if (tile.plan->wide_exponents) return run_kind<BlockKind::wide>(tile);
  return run_kind<BlockKind::narrow>(tile);
}

inline UnitKernel lane_kernel() {
  return {4 * static_cast<std::int64_t>(float_lanes()), pack_rows, load_addends, run_tile};
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

// Without lanes there is nothing to be gained over softfloat.
namespace N_SCALAR {
inline UnitKernel lane_kernel() { return {}; }
}  // namespace N_SCALAR

UnitKernel unit_kernel(SimdLevel level) {
  constexpr LevelFunctions<UnitKernel (*)()> kernels KVSIM_AT_EACH_LEVEL(lane_kernel);
  const auto kernel = function_at(level, kernels);
  return kernel == nullptr ? UnitKernel{} : kernel();
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
