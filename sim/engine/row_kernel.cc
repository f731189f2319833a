// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see column_kernel.cc.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/row_kernel.cc"
#include "sim/engine/row_kernel.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "sim/engine/column_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// Vectors side by side: what 16 or 32 registers hold of rows_per_group rows.
#if HWY_TARGET == HWY_AVX3
inline constexpr std::size_t row_vectors = 4;
#else
inline constexpr std::size_t row_vectors = 2;
#endif

/// kRows (a power of two) rows of vectors; halving keeps every vector in a register of its own.
template <class L, Product P, std::size_t kRows>
struct Rows {
  using Half = Rows<L, P, kRows / 2>;
  using T = typename L::T;
  static constexpr auto half = static_cast<std::int64_t>(kRows / 2);
  Half low, high;

  HWY_INLINE Rows() {}

  HWY_INLINE void start(const Terms<L>& t, const float* a, std::int64_t a_stride, const float* b) {
    low.start(t, a, a_stride, b);
    high.start(t, a + half * a_stride, a_stride, b);
  }
  HWY_INLINE void add_term(const Terms<L>& t, const float* a, std::int64_t a_stride,
                           const float* b) {
    low.add_term(t, a, a_stride, b);
    high.add_term(t, a + half * a_stride, a_stride, b);
  }
  HWY_INLINE void join(const Terms<L>& t, const T* other, std::size_t width) {
    low.join(t, other, width);
    high.join(t, other + kRows / 2 * width, width);
  }
  HWY_INLINE void round_to(const RowKernelArguments& call, const LanePlan& plan,
                           const Terms<L>& t) {
    low.round_to(call, plan, t);
    high.round_to(call, plan, t);
  }
  HWY_INLINE void load_slot(const T* slot, std::size_t width) {
    low.load_slot(slot, width);
    high.load_slot(slot + kRows / 2 * width, width);
  }
  HWY_INLINE void store_slot(T* slot, std::size_t width) const {
    low.store_slot(slot, width);
    high.store_slot(slot + kRows / 2 * width, width);
  }
  HWY_INLINE void finish(const Terms<L>& t) {
    low.finish(t);
    high.finish(t);
  }
  HWY_INLINE void store(float* to, std::int64_t stride) const {
    low.store(to, stride);
    high.store(to + half * stride, stride);
  }
};

template <class L, Product P>
struct Rows<L, P, 1> {
  using B = Block<L, P, false, row_vectors>;
  using T = typename L::T;
  B block;

  HWY_INLINE Rows() {}

  HWY_INLINE void start(const Terms<L>& t, const float* a, std::int64_t, const float* b) {
    typename B::Noted none;
    block.start(t, L::broadcast(*a), b, none);
  }
  HWY_INLINE void add_term(const Terms<L>& t, const float* a, std::int64_t, const float* b) {
    typename B::Noted none;
    block.add_term(t, L::broadcast(*a), b, none);
  }
  HWY_INLINE void join(const Terms<L>& t, const T* other, std::size_t) {
    typename B::Noted none;
    block.join(t, other, none);
  }
  HWY_INLINE void round_to(const RowKernelArguments&, const LanePlan& plan, const Terms<L>& t) {
    typename B::Noted none;
    block.finish(t, none);
    float values[most_lanes * row_vectors];
    block.store(values);
    const auto count = static_cast<std::int64_t>(row_vectors * lanes_of<L>());
    round_values({.plan = &plan, .in = values, .out = values, .count = count});
    block.load(values);
  }
  HWY_INLINE void load_slot(const T* slot, std::size_t) { block.load_slot(slot); }
  HWY_INLINE void store_slot(T* slot, std::size_t) const { block.store_slot(slot); }
  HWY_INLINE void finish(const Terms<L>& t) {
    typename B::Noted none;
    block.finish(t, none);
  }
  HWY_INLINE void store(float* to, std::int64_t) const { block.store(to); }
};

/// The program for rows_per_group rows of row_vectors vectors, the first of them at column `j`.
template <class L, Product P>
HWY_NOINLINE void run_rows(const RowKernelArguments& call, std::int64_t j) {
  using T = typename L::T;
  using Group = Rows<L, P, static_cast<std::size_t>(rows_per_group)>;
  const Terms<L> terms(*call.plan);
  const std::size_t width = row_vectors * lanes_of<L>();
  T* const slots = reinterpret_cast<T*>(call.scratch);
  const auto slot_at = [&](std::int32_t slot) {
    return slots + static_cast<std::size_t>(slot * rows_per_group) * width;
  };
  for (std::size_t s = 0; s < call.program->steps.size(); ++s) {
    const Step& step = call.program->steps[s];
    Group group;
    T* const slot = slot_at(step.slot);
    switch (step.kind) {
      case StepKind::start:
      case StepKind::terms: {
        const float* a = call.a + step.first;
        const bool copied = call.b_rows != nullptr;
        const float* b = call.b + j + (copied ? call.b_rows[s] : step.first) * call.b_stride;
        const std::int64_t b_step = (copied ? 1 : step.stride) * call.b_stride;
        std::int64_t left = step.count;
        if (step.kind == StepKind::start) {
          group.start(terms, a, call.a_stride, b);
          a += step.stride;
          b += b_step;
          --left;
        } else {
          group.load_slot(slot, width);
        }
        for (; left > 0; --left) {
          group.add_term(terms, a, call.a_stride, b);
          a += step.stride;
          b += b_step;
        }
        break;
      }
      case StepKind::join:
        group.load_slot(slot, width);
        group.join(terms, slot_at(step.other), width);
        break;
      case StepKind::round_to:
        group.load_slot(slot, width);
        group.round_to(call, call.round_plans[step.other], terms);
        break;
      case StepKind::zero:
      case StepKind::exact:
      case StepKind::unit:
        break;
    }
    group.store_slot(slot, width);
  }
  Group result;
  result.load_slot(slot_at(call.program->result), width);
  result.finish(terms);
  result.store(call.out + j, call.out_stride);
}

/// Columns of one call at this level: row_vectors vectors of floats.
inline std::int64_t row_columns() {
  return static_cast<std::int64_t>(row_vectors * hn::Lanes(FloatTag()));
}

template <class L, Product P>
void run_all(const RowKernelArguments& call) {
  const auto width = static_cast<std::int64_t>(row_vectors * lanes_of<L>());
  for (std::int64_t j = 0; j < row_columns(); j += width) run_rows<L, P>(call, j);
}

inline void sum_rows(const RowKernelArguments& call) {
  const bool fused = call.plan->product == Product::fused;
  switch (call.plan->kind) {
    case LaneKind::binary32:
      return fused ? run_all<FloatLanes<RoundBinary32>, Product::fused>(call)
                   : run_all<FloatLanes<RoundBinary32>, Product::rounded>(call);
    case LaneKind::binary16:
      return run_all<FloatLanes<RoundBinary16>, Product::rounded>(call);
    case LaneKind::truncated:
      return run_all<FloatLanes<RoundTruncated>, Product::rounded>(call);
    case LaneKind::narrow:
      return run_all<FloatLanes<RoundNarrow<FloatTag>>, Product::rounded>(call);
    case LaneKind::wide:
      break;
  }
  switch (call.plan->product) {
    case Product::rounded:
      return run_all<WideLanes, Product::rounded>(call);
    case Product::fused:
      return run_all<WideLanes, Product::fused>(call);
    case Product::exact:
      return run_all<WideLanes, Product::exact>(call);
  }
}

inline RowKernel row_kernel_here() { return {row_columns(), sum_rows}; }

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

RowKernel row_kernel(SimdLevel level) {
  constexpr LevelFunctions<RowKernel (*)()> kernels KVSIM_AT_EACH_LEVEL(row_kernel_here);
  const auto kernel = function_at(level, kernels);
  return kernel == nullptr ? RowKernel{} : kernel();
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
