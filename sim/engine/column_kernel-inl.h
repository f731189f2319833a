// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Executes a Program on blocks of columns. Compiled once per instruction set: the guard flips.
#if defined(KVSIM_SIM_ENGINE_COLUMN_KERNEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KVSIM_SIM_ENGINE_COLUMN_KERNEL_INL_H
#undef KVSIM_SIM_ENGINE_COLUMN_KERNEL_INL_H
#else
#define KVSIM_SIM_ENGINE_COLUMN_KERNEL_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/engine/column_block-inl.h"
#include "sim/engine/column_kernel.h"
#include "sim/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

/// Independent vectors that advance together, to hide the latency of the chain of one sum.
inline constexpr std::size_t vectors_per_block = 4;

inline void round_values(const RoundKernelArguments& call);

/// Rounds a block of partial sums to another format, by way of memory: it happens once per part of
/// an order, not once per term.
template <class L, Product P, bool kNote, std::size_t kVectors>
HWY_NOINLINE void round_block(const ColumnKernelArguments& call, const Step& step,
                              const Terms<L>& terms, Block<L, P, kNote, kVectors>& block,
                              typename Block<L, P, kNote, kVectors>::Noted& noted) {
  const std::size_t width = kVectors * lanes_of<L>();
  const LanePlan& plan = call.round_plans[step.other];
  block.finish(terms, noted);
  float values[most_lanes * vectors_per_block] = {};
  block.store(values);
  round_values(
      {.plan = &plan, .in = values, .out = values, .count = static_cast<std::int64_t>(width)});
  block.load(values);
  if constexpr (kNote) {
    // In units of the accumulator's roundoff, which is what the sum is multiplied by in the end.
    const double scale = plan.unit_roundoff / call.plan->unit_roundoff;
    double magnitudes[most_lanes * vectors_per_block] = {};
    for (std::size_t j = 0; j < width; ++j) {
      const double magnitude = std::fabs(static_cast<double>(values[j]));
      magnitudes[j] = magnitude >= plan.saturation
                          ? HUGE_VAL
                          : std::max(magnitude, plan.smallest_normal) * scale;
    }
    noted.add(magnitudes);
  }
}

/// Runs the program for kVectors vectors of columns from `column` on. `b` points at the first of
/// them in row 0; rows are `stride` floats apart.
template <class L, Product P, bool kNote, std::size_t kVectors>
HWY_NOINLINE void run_block(const ColumnKernelArguments& call, std::int64_t column, const float* b,
                            std::int64_t stride, std::int64_t columns, float* out,
                            double* magnitudes) {
  using T = typename L::T;
  const Terms<L> terms(*call.plan);
  const std::size_t width = kVectors * lanes_of<L>();
  T* const slots = reinterpret_cast<T*>(call.scratch);
  typename Block<L, P, kNote, kVectors>::Noted noted;
  for (const Step& step : call.program->steps) {
    Block<L, P, kNote, kVectors> block;
    T* const slot = slots + static_cast<std::size_t>(step.slot) * width;
    switch (step.kind) {
      case StepKind::zero:
        break;
      case StepKind::start:
      case StepKind::terms: {
        const float* a = call.a + step.first;
        const float* row = b + step.first * stride;
        const std::int64_t row_step = step.stride * stride;
        std::int64_t left = step.count;
        if (step.kind == StepKind::start) {
          block.start(terms, L::broadcast(*a), row, noted);
          --left;
        } else {
          block.load_slot(slot);
          a -= step.stride;
          row -= row_step;
        }
        for (; left > 0; --left) {
          a += step.stride;
          row += row_step;
          block.add_term(terms, L::broadcast(*a), row, noted);
        }
        break;
      }
      case StepKind::join:
        block.load_slot(slot);
        block.join(terms, slots + static_cast<std::size_t>(step.other) * width, noted);
        break;
      case StepKind::exact: {
        float sums[most_lanes * vectors_per_block] = {};
        for (std::int64_t j = 0; j < columns; ++j) {
          sums[j] = call.exact_node->sum(call.program->positions.data() + step.first, step.count,
                                         step.other != 0, column + j);
        }
        block.load(sums);
        block.note_exact(terms, noted);
        break;
      }
      case StepKind::round_to:
        block.load_slot(slot);
        round_block<L, P, kNote, kVectors>(call, step, terms, block, noted);
        break;
      case StepKind::unit:  // matrix.h computes these
        break;
    }
    block.store_slot(slot);
  }
  Block<L, P, kNote, kVectors> result;
  result.load_slot(slots + static_cast<std::size_t>(call.program->result) * width);
  result.finish(terms, noted);
  result.store(out);
  if constexpr (kNote) noted.store(magnitudes);
}

/// Columns begin … end − 1 with fewer columns than one vector has lanes: copies of the rows, filled
/// up with zeros, stand in for the columns that are missing.
template <class L, Product P, bool kNote>
void run_few_columns(const ColumnKernelArguments& call) {
  const std::size_t width = lanes_of<L>();
  const auto count = static_cast<std::size_t>(call.end - call.begin);
  float out[most_lanes];
  double magnitudes[most_lanes];
  const auto stride = static_cast<std::int64_t>(width);
  for (std::int64_t k = 0; k < call.terms; ++k) {
    float* const to = call.padded_rows + k * stride;
    std::copy_n(call.b + k * call.stride + call.begin, count, to);
    std::fill(to + count, to + width, 0.0F);
  }
  run_block<L, P, kNote, 1>(call, call.begin, call.padded_rows, stride, call.end - call.begin, out,
                            magnitudes);
  std::copy_n(out, count, call.out + call.begin);
  if constexpr (kNote) std::copy_n(magnitudes, count, call.magnitudes + call.begin);
}

/// Columns begin … end − 1. The last vector of columns may overlap the one before it: it computes
/// the same numbers once more.
template <class L, Product P, bool kNote>
void run_columns(const ColumnKernelArguments& call) {
  const auto lanes = static_cast<std::int64_t>(lanes_of<L>());
  const std::int64_t block = lanes * static_cast<std::int64_t>(vectors_per_block);
  if (call.end - call.begin < lanes) {
    if (call.end > call.begin) run_few_columns<L, P, kNote>(call);
    return;
  }
  std::int64_t j = call.begin;
  for (; j + block <= call.end; j += block) {
    run_block<L, P, kNote, vectors_per_block>(call, j, call.b + j, call.stride, block, call.out + j,
                                              kNote ? call.magnitudes + j : nullptr);
  }
  for (; j < call.end; j += lanes) {
    const std::int64_t at = std::min(j, call.end - lanes);
    run_block<L, P, kNote, 1>(call, at, call.b + at, call.stride, lanes, call.out + at,
                              kNote ? call.magnitudes + at : nullptr);
  }
}

template <class L, Product P>
void run_noted(const ColumnKernelArguments& call) {
  if (call.magnitudes == nullptr) {
    run_columns<L, P, false>(call);
  } else {
    run_columns<L, P, true>(call);
  }
}

inline void sum_columns(const ColumnKernelArguments& call) {
  const bool fused = call.plan->product == Product::fused;
  switch (call.plan->kind) {
    case LaneKind::binary32:
      return fused ? run_noted<FloatLanes<RoundBinary32>, Product::fused>(call)
                   : run_noted<FloatLanes<RoundBinary32>, Product::rounded>(call);
    case LaneKind::binary16:
      return run_noted<FloatLanes<RoundBinary16>, Product::rounded>(call);
    case LaneKind::truncated:
      return run_noted<FloatLanes<RoundTruncated>, Product::rounded>(call);
    case LaneKind::narrow:
      return run_noted<FloatLanes<RoundNarrow<FloatTag>>, Product::rounded>(call);
    case LaneKind::wide:
      break;
  }
  switch (call.plan->product) {
    case Product::rounded:
      return run_noted<WideLanes, Product::rounded>(call);
    case Product::fused:
      return run_noted<WideLanes, Product::fused>(call);
    case Product::exact:
      return run_noted<WideLanes, Product::exact>(call);
  }
}

template <class L>
void round_with(const RoundKernelArguments& call) {
  const L lanes(*call.plan);
  const auto width = static_cast<std::int64_t>(lanes_of<L>());
  std::int64_t i = 0;
  for (; i + width <= call.count; i += width) {
    L::store(lanes.round(L::load(call.in + i)), call.out + i);
  }
  if (i == call.count) return;
  float rest[most_lanes] = {};
  std::copy_n(call.in + i, call.count - i, rest);
  L::store(lanes.round(L::load(rest)), rest);
  std::copy_n(rest, call.count - i, call.out + i);
}

inline void round_values(const RoundKernelArguments& call) {
  switch (call.plan->kind) {
    case LaneKind::binary32:
      return round_with<FloatLanes<RoundBinary32>>(call);
    case LaneKind::binary16:
      return round_with<FloatLanes<RoundBinary16>>(call);
    case LaneKind::truncated:
      return round_with<FloatLanes<RoundTruncated>>(call);
    case LaneKind::narrow:
      return round_with<FloatLanes<RoundNarrow<FloatTag>>>(call);
    case LaneKind::wide:
      return round_with<WideLanes>(call);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#endif
