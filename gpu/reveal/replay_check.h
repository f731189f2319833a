// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/reveal/cancel_data.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/reveal.h"
#include "gpu/reveal/sum_model.h"
#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What a back end gave for some data.
struct Observation {
  CallData data;
  std::vector<float> sums;  ///< [rows][columns]
};

/// One call.
[[nodiscard]] Result<Observation> observe(Reduction& reduction, DataKind kind, std::uint64_t seed,
                                          std::uint64_t number);

/// How many of a class's sums differ from the model's in any bit (a NaN is a NaN), and the first.
struct Comparison {
  std::int64_t compared = 0;
  std::int64_t different = 0;
  std::int64_t row = -1;
  std::int64_t column = -1;
};
[[nodiscard]] Result<Comparison> compare(const Reduction& reduction, const SumModel& model,
                                         const SumClass& sums, const Observation& observation);

/// The first difference of a comparison with as many terms as possible replaced by 0.
[[nodiscard]] Result<FailingSum> shrink(Reduction& reduction, const SumModel& model,
                                        const Observation& observation,
                                        const Comparison& comparison);

}  // namespace kvsim::gpu
