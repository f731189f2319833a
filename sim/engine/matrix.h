// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/engine/columns.h"
#include "sim/engine/numbers.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Products of matrices, out[i][j] = Σ_k a[i][k] × b[k][j], every element in exactly the same
/// order.
namespace kvsim {

/// One product of matrices in one order. Matrices are stored by rows; a stride is the number of
/// floats from one row to the next.
struct MatrixProblem {
  Order order;
  Product product = Product::rounded;
  softfloat::Format input;        ///< format of the factors
  softfloat::Format accumulator;  ///< format of rounded products, partial sums and results
  std::int64_t rows = 0;          ///< of a and out
  std::int64_t terms = 0;         ///< columns of a, rows of b
  std::int64_t columns = 0;       ///< of b and out
  const float* a = nullptr;       ///< a[i × a_stride + k], numbers of `input`
  std::int64_t a_stride = 0;
  NumberPointer b;  ///< b[k × b_stride + j], numbers of `input`, as floats or codes
  std::int64_t b_stride = 0;
  /// b is stored by columns instead, as the weights of a linear layer are: b[j × b_stride + k].
  bool b_transposed = false;
  /// c[i × c_stride + j], numbers of `accumulator`: the addend of the first instruction, accepted
  /// only where the order is one matrix unit; null: +0.
  const float* c = nullptr;
  std::int64_t c_stride = 0;
};

/// Computes out[i × out_stride + j] with the bits that sum_products() gives, as a float; a NaN is
/// the quiet NaN 0x7fc00000. Nothing in `options` changes a bit; threads split the outputs. `out`
/// must not overlap the operands. Holds true, or an error that names a format, size, order or level
/// which cannot be.
Result<bool> sum_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                        const EngineOptions& options = {});

/// One product of matrices on a matrix unit: c[i][j] enters the first instruction, which hands its
/// result to the next one, in increasing k; the last instruction is filled up with zeros.
struct UnitProblem {
  const MatrixUnit* unit = nullptr;  ///< without block scales; its output's numbers must be floats
  std::int64_t rows = 0;             ///< of a and out
  std::int64_t terms = 0;            ///< columns of a, rows of b
  std::int64_t columns = 0;          ///< of b and out
  const float* a = nullptr;          ///< a[i × a_stride + k], numbers of unit->operand
  std::int64_t a_stride = 0;
  NumberPointer b;  ///< b[k × b_stride + j], numbers of unit->operand, as floats or codes
  std::int64_t b_stride = 0;
  /// b is stored by columns instead: b[j × b_stride + k].
  bool b_transposed = false;
  const float* c = nullptr;  ///< c[i × c_stride + j], numbers of unit->output; null: +0
  std::int64_t c_stride = 0;
  /// What the caller reads next, perhaps: with few rows it is fetched into the cache meanwhile,
  /// because b is then used so little that reading it takes as long as computing. Changes no bit.
  std::span<const std::byte> read_next = {};
};

/// Computes out[i × out_stride + j] with the bits of unit_dot() (sim/units/dot.h), as a float; a
/// NaN is the quiet NaN 0x7fc00000. `out` may be `c` with the same stride, and must not overlap a
/// or b. Errors as for sum_matrix().
Result<bool> multiply_on_unit(const UnitProblem& problem, float* out, std::int64_t out_stride,
                              const EngineOptions& options = {});

}  // namespace kvsim
