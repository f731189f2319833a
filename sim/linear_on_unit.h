// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/engine/matrix.h"

namespace kvsim {

/// Whether linear_on_unit() takes the order: `mma(UNIT)`, or one of `blocks` and `split` around it
/// that merges its parts one after the other.
[[nodiscard]] bool is_linear_on_unit(const Order& order);

/// sum_matrix() for such an order: each part of the terms is one product of matrices on the unit,
/// and parts are merged element by element. The accumulator is binary32 and so are the unit's
/// results.
Result<bool> linear_on_unit(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                            const EngineOptions& options = {});

}  // namespace kvsim
