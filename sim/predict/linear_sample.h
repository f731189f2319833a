// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/predict/kernel_choice.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// A linear layer with seeded numbers: x [rows][terms] standard normal and w [terms][outputs]
/// normal of variance 1 ÷ terms, both rounded to storage, so that outputs have variance 1.
struct LinearSample {
  softfloat::Format storage;
  std::int64_t rows = 0;
  std::int64_t terms = 0;
  std::int64_t outputs = 0;  ///< the first ones of all_outputs
  std::int64_t all_outputs = 0;
  std::vector<float> x;
  std::vector<float> w;
};

/// `stream` tells layers of one seed apart. Numbers are a function of (seed, stream, row, term) and
/// (seed, stream, term, output).
struct LinearSampleSize {
  std::int64_t rows = 1;
  std::int64_t terms = 1;
  std::int64_t outputs = 1;
  std::int64_t all_outputs = 0;  ///< 0: outputs
};
[[nodiscard]] LinearSample make_linear_sample(const softfloat::Format& storage,
                                              const LinearSampleSize& size, std::uint64_t seed,
                                              std::uint64_t stream);

/// Rows first … first + count − 1 of a sample, each as a row of a launch of `launch_rows` rows;
/// outputs [count][outputs].
struct LinearCall {
  std::int64_t first = 0;
  std::int64_t count = 1;
  std::int64_t launch_rows = 1;
};
[[nodiscard]] Result<std::vector<float>> run_linear(const LinearSample& sample,
                                                    const KernelChoice& kernels,
                                                    const LinearCall& call,
                                                    const EngineOptions& engine);

/// The same with the terms shared among ranks, as in tensor parallelism: each rank's sum is rounded
/// to storage, and they are added in the order of the ranks, rounded to storage each time. terms is
/// a multiple of ranks.
[[nodiscard]] Result<std::vector<float>> run_linear_on_ranks(const LinearSample& sample,
                                                             const KernelChoice& kernels,
                                                             const LinearCall& call,
                                                             std::int64_t ranks,
                                                             const EngineOptions& engine);

/// What fixes the bits of a launch: "h100-gemm: mma(h100.wgmma.f16.f32)". Launches with equal rules
/// give equal bits. `ranks` share the terms.
[[nodiscard]] Result<std::string> linear_rule(const LinearSample& sample,
                                              const KernelChoice& kernels, std::int64_t launch_rows,
                                              std::int64_t ranks = 1);

}  // namespace kvsim
