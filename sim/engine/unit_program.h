// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/engine/matrix.h"
#include "sim/engine/program.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/result.h"

namespace kvsim::engine {

/// Executes the program of an order that ends in `mma(UNIT)`, tile by tile: every `unit` step is a
/// product of matrices on the unit, every other step combines its results element by element. No
/// step takes single terms. The problem has at least one term and no addend. A thread keeps at most
/// ⌈log2 parts⌉ + 1 partial sums of a tile of 64 × 512 outputs (128 KiB) at once for each `blocks`
/// or `split` of the order. Errors are those of multiply_on_unit().
Result<bool> run_unit_program(const MatrixProblem& problem, const Program& program,
                              const MatrixUnit& unit, float* out, std::int64_t out_stride,
                              const EngineOptions& options);

}  // namespace kvsim::engine
