// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/dot_kernel.cc"
#include "sim/engine/dot_kernel.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/engine/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// sum + a × b.
template <bool kFused>
HWY_INLINE FloatVector add_product(FloatVector sum, FloatVector a, FloatVector b) {
  if constexpr (!kFused) return hn::Add(sum, hn::Mul(a, b));
  return FloatLanes<RoundBinary32>(LanePlan()).fused(sum, a, b);
}

/// Lanes of kColumns columns that share the loads of a. kWidth lanes are one or more vectors.
template <NumberCode kCode, bool kFused, int kWidth, int kColumns>
struct Dots {
  const DotArguments& call;
  std::int64_t apart;  ///< from one column to the next

  /// Columns first, first + apart, …
  HWY_INLINE void run(std::int64_t first) const {
    const FloatTag d;
    constexpr int lanes = static_cast<int>(hn::MaxLanes(FloatTag()));
    constexpr int vectors = kWidth / lanes;
    const Stored<kCode>* const b = stored<kCode>(call.b) + first * call.b_stride;
    FloatVector sum[kColumns][vectors];
    for (int c = 0; c < kColumns; ++c) {
      for (int v = 0; v < vectors; ++v) {
        const FloatVector x = hn::LoadU(d, call.a + v * lanes);
        const FloatVector y = load_numbers<kCode>(b + c * apart * call.b_stride + v * lanes);
        // Fused sums start from +0.
        sum[c][v] = kFused ? add_product<kFused>(hn::Zero(d), x, y) : hn::Mul(x, y);
      }
    }
    std::int64_t k = kWidth;
    for (; k + kWidth <= call.terms; k += kWidth) {
      for (int v = 0; v < vectors; ++v) {
        const FloatVector x = hn::LoadU(d, call.a + k + v * lanes);
        for (int c = 0; c < kColumns; ++c) {
          const FloatVector y = load_numbers<kCode>(b + c * apart * call.b_stride + k + v * lanes);
          sum[c][v] = add_product<kFused>(sum[c][v], x, y);
        }
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      float all[kWidth];
      for (int v = 0; v < vectors; ++v) hn::StoreU(sum[c][v], d, all + v * lanes);
      const std::int64_t column = first + c * apart;
      call.out[column] = finish(all, k, call.b + column * call.b_stride);
    }
  }

 private:
  /// Adds the terms of the last row of lanes, and joins the lanes.
  [[nodiscard]] float finish(float (&all)[kWidth], std::int64_t first, NumberPointer b) const {
    for (std::int64_t k = first; k < call.terms; ++k) {
      float& sum = all[k - first];
      sum = kFused ? std::fma(call.a[k], b[k], sum) : sum + call.a[k] * b[k];
    }
    for (int half = kWidth / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) all[i] += all[i + half];
    }
    return all[0];
  }
};

/// Columns that are computed at once: their sums stay in registers. They lie far apart, so that
/// each is read along a page of its own: a CPU that fetches ahead does not follow several in one
/// page.
#if HWY_TARGET == HWY_AVX3
inline constexpr int dots_at_once = 4;
#else
inline constexpr int dots_at_once = 2;
#endif

template <NumberCode kCode, bool kFused, int kWidth>
void run_dots(const DotArguments& call) {
  const std::int64_t apart = call.columns / dots_at_once;
  for (std::int64_t j = 0; j < apart; ++j) {
    Dots<kCode, kFused, kWidth, dots_at_once>{call, apart}.run(j);
  }
  for (std::int64_t j = apart * dots_at_once; j < call.columns; ++j) {
    Dots<kCode, kFused, kWidth, 1>{call, 1}.run(j);
  }
}

template <NumberCode kCode>
void run_code(const DotArguments& call) {
  if (call.width == 64) {
    return call.fused ? run_dots<kCode, true, 64>(call) : run_dots<kCode, false, 64>(call);
  }
  return call.fused ? run_dots<kCode, true, 32>(call) : run_dots<kCode, false, 32>(call);
}

inline void dots(const DotArguments& call) {
  switch (call.b.code()) {
    case NumberCode::binary32:
      return run_code<NumberCode::binary32>(call);
    case NumberCode::bfloat16:
      return run_code<NumberCode::bfloat16>(call);
    case NumberCode::binary16:
      return run_code<NumberCode::binary16>(call);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

std::int64_t dot_lanes(const OrderItem& item) {
  constexpr std::int64_t torch_accumulators = 8;
  return item.kind == OrderKind::torch_dot ? torch_accumulators * item.size : item.size;
}

bool takes_dots(const Order& order, const LanePlan& plan, std::int64_t terms) {
  if (order.items.size() != 1 || plan.kind != LaneKind::binary32 ||
      plan.product == Product::exact) {
    return false;
  }
  const OrderItem& item = order.items[0];
  if (item.kind == OrderKind::torch_dot) {
    const std::int64_t lanes = dot_lanes(item);
    return plan.product == Product::fused && (lanes == 32 || lanes == 64) && terms >= lanes &&
           terms % lanes == 0;
  }
  // As many lanes as a power of two are halved as a butterfly joins them.
  const bool join = item.join == LaneJoin::butterfly || item.join == LaneJoin::halving;
  const bool tail = item.head == 0 && item.multiple == 1 &&
                    (item.tail == LaneTail::masked || terms % item.size == 0);
  return item.kind == OrderKind::lanes && (item.size == 32 || item.size == 64) &&
         item.accumulators == 1 && !item.init_zero && join && tail && terms >= item.size;
}

void sum_dots(const DotArguments& call, SimdLevel level) {
  constexpr LevelFunctions<void (*)(const DotArguments&)> kernels KVSIM_AT_EACH_LEVEL(dots);
  function_or_scalar(level, kernels)(call);
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
