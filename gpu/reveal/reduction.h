// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What a caller wants to know about: one operator at one shape. Which sizes count depends on the
/// operator; the others are 1.
struct ReductionShape {
  std::string operation;          ///< linear, matmul, gemm, bmm, gemv, dot, sum, mean
  softfloat::Format format;       ///< of the inputs
  std::int64_t rows = 1;          ///< M of linear, matmul, gemm, bmm
  std::int64_t columns = 1;       ///< N of the same; rows of a gemv's matrix; rows of sum and mean
  std::int64_t terms = 1;         ///< K
  std::int64_t batch = 1;         ///< B of bmm
  std::int64_t misalignment = 0;  ///< bytes, of the operand that the columns stand in
  std::map<std::string, std::string> attributes = {};  ///< of every call
};

/// An operator as what all of it is about: sums of `terms` products, out[i][j] =
/// Σ_k left[i][k] × right[j][k], many in one call.
class Reduction {
 public:
  Reduction() = default;
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;
  virtual ~Reduction() = default;

  [[nodiscard]] virtual std::int64_t terms() const = 0;
  [[nodiscard]] virtual std::int64_t rows() const = 0;          ///< left vectors of a call
  [[nodiscard]] virtual std::int64_t columns() const = 0;       ///< right vectors of a call
  [[nodiscard]] virtual bool has_left() const { return true; }  ///< false: left factors are 1
  /// The sum is divided by the number of terms before it is rounded to the output.
  [[nodiscard]] virtual bool is_mean() const { return false; }
  [[nodiscard]] virtual softfloat::Format input() const = 0;
  /// Of the results; known after the first call.
  [[nodiscard]] virtual softfloat::Format output() const = 0;
  /// Operator, back end and sizes, for messages.
  [[nodiscard]] virtual std::string description() const = 0;

  /// One call: left [rows][terms] (ignored without has_left()), right [columns][terms], numbers of
  /// input(); the result is [rows][columns], numbers of output().
  [[nodiscard]] Result<std::vector<float>> run(std::span<const float> left,
                                               std::span<const float> right) {
    ++calls_;
    return compute(left, right);
  }
  /// Calls of the operator so far.
  [[nodiscard]] std::int64_t calls() const { return calls_; }

 protected:
  virtual Result<std::vector<float>> compute(std::span<const float> left,
                                             std::span<const float> right) = 0;

 private:
  std::int64_t calls_ = 0;
};

/// The operator of a back end as a Reduction. The back end must outlive it. Errors (usage): an
/// operator that is no sum of products, a size below 1 or one that the operator does not have.
[[nodiscard]] Result<std::unique_ptr<Reduction>> make_reduction(Backend& backend,
                                                                const ReductionShape& shape);

/// The operators that make_reduction() takes.
[[nodiscard]] std::span<const std::string_view> reduction_operators();

}  // namespace kvsim::gpu
