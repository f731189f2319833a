// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/attention/kernel.h"
#include "sim/exp_models.h"

namespace kvsim::attention {

/// The outputs of one row by split: outputs[s × stride] … head_dim numbers each, already divided by
/// their own sum, and log_sums[s]: lse in base e, for serial_states in base 2. Splits beyond
/// log_sums are empty, as are those with a log sum of −∞.
struct SplitOutputs {
  std::int64_t splits = 1;          ///< of the launch
  std::span<const float> log_sums;  ///< of the splits that have keys, at most `splits`
  const float* outputs = nullptr;
  std::int64_t stride = 0;
  std::int64_t head_dim = 0;
  SimdLevel level = best_simd_level();  ///< changes no bit
};

/// Merges them into out [head_dim], binary32 not yet rounded to storage, and returns the row's lse
/// in base e. +0 and −∞ where all splits are empty. `exp` gives e^x, for
/// serial_states and base2_normalized_weights 2^x.
float merge_splits(SplitMerge merge, const SplitOutputs& parts, const ExpFunction& exp,
                   std::span<float> out);

}  // namespace kvsim::attention
