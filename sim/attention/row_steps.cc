// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see sim/engine/column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/attention/row_steps.cc"
#include "sim/attention/row_steps.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "sim/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::attention {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// a × b + c with one rounding.
HWY_INLINE V fused(V a, V b, V c) {
  using Lanes = engine::HWY_NAMESPACE::FloatLanes<engine::HWY_NAMESPACE::RoundBinary32>;
  return Lanes(engine::LanePlan()).fused(c, a, b);
}

float maximum(float before, const float* values, std::size_t count, float offset) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V largest = hn::Set(d, before);
  const V added = hn::Set(d, offset);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V x = hn::Add(hn::LoadU(d, values + i), added);
    largest = hn::IfThenElse(hn::Gt(x, largest), x, largest);
  }
  float of_lanes[engine::most_lanes];
  hn::StoreU(largest, d, of_lanes);
  float result = before;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    result = of_lanes[lane] > result ? of_lanes[lane] : result;
  }
  for (; i < count; ++i) {
    const float x = values[i] + offset;
    result = x > result ? x : result;
  }
  return result;
}

void multiply_add(float* values, std::size_t count, float factor, float addend) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V by = hn::Set(d, factor);
  const V plus = hn::Set(d, addend);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(fused(hn::LoadU(d, values + i), by, plus), d, values + i);
  }
  for (; i < count; ++i) values[i] = std::fma(values[i], factor, addend);
}

void add_product(const float* values, std::size_t count, float factor, float* sums) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V by = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(fused(hn::LoadU(d, values + i), by, hn::LoadU(d, sums + i)), d, sums + i);
  }
  for (; i < count; ++i) sums[i] = std::fma(values[i], factor, sums[i]);
}

constexpr RowSteps steps{maximum, multiply_add, add_product};

}  // namespace

const RowSteps& row_steps_here() { return steps; }

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::attention {

const RowSteps& row_steps(SimdLevel level) {
  constexpr engine::LevelFunctions<const RowSteps& (*)()> steps KVSIM_AT_EACH_LEVEL(row_steps_here);
  return engine::function_or_scalar(level, steps)();
}

}  // namespace kvsim::attention
#endif  // HWY_ONCE
