// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/engine/matrix.h"

namespace kvsim {

/// sum_matrix() for the order `exact` and the accumulator binary32, whose every result is the exact
/// sum rounded once: a binary64 sum with an error bound decides where it can, softfloat where the
/// bound leaves two candidates. Errors (usage): another order or accumulator, negative sizes,
/// strides that are too small.
Result<bool> exact_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                          const EngineOptions& options = {});

}  // namespace kvsim
