// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/reduction.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Operators that add up terms of one sign.
enum class PositiveKind : std::uint8_t {
  softmax,      ///< Σ e^(x − max x)
  log_softmax,  ///< the same
  rms_norm,     ///< Σ x²
};

/// The operators that PositiveOperator takes.
[[nodiscard]] std::span<const std::string_view> positive_operators();

/// Which of them the name means; nullopt: none.
[[nodiscard]] std::optional<PositiveKind> positive_kind(std::string_view name);

/// softmax, log-softmax or rms-norm of a back end: [rows][terms] numbers in, as many out. Rows are
/// independent, so that each can carry a probe of its own.
class PositiveOperator {
 public:
  /// `shape`: columns are the rows of x, terms their elements. The back end must outlive it.
  /// Errors (usage): another operator, a size below 1 or one that the operator does not have.
  [[nodiscard]] static Result<PositiveOperator> make(Backend& backend, ReductionShape shape);

  [[nodiscard]] PositiveKind kind() const { return kind_; }
  [[nodiscard]] std::int64_t rows() const { return shape_.columns; }
  [[nodiscard]] std::int64_t terms() const { return shape_.terms; }
  [[nodiscard]] softfloat::Format input() const { return shape_.format; }
  /// Of the results; known after the first call.
  [[nodiscard]] softfloat::Format output() const { return output_; }
  /// The ε that the caller's attributes state; 10^−6 where they state none.
  [[nodiscard]] double epsilon() const;
  /// Operator, back end and sizes, for messages.
  [[nodiscard]] std::string description() const;
  [[nodiscard]] std::int64_t calls() const { return calls_; }

  /// One call.
  struct Call {
    std::span<const float> x;            ///< [rows][terms], numbers of input()
    std::span<const float> weight = {};  ///< [terms], of rms-norm alone; empty: none
    std::optional<double> epsilon = {};  ///< of rms-norm, in place of epsilon()
  };
  [[nodiscard]] Result<std::vector<float>> run(const Call& call);
  /// Any number of rows, in as many calls as it takes, at the places of use_rows(). Spare rows
  /// repeat the first one.
  [[nodiscard]] Result<std::vector<float>> run_rows(const Call& call);
  /// From now on run_rows() looks at these rows of a call alone; one at least.
  void use_rows(std::vector<std::int64_t> places) { places_ = std::move(places); }
  /// Rows that one call of run_rows() answers.
  [[nodiscard]] std::int64_t capacity() const {
    return places_.empty() ? rows() : static_cast<std::int64_t>(places_.size());
  }

 private:
  PositiveOperator(Backend& backend, ReductionShape shape, PositiveKind kind)
      : backend_(&backend), shape_(std::move(shape)), kind_(kind), output_(shape_.format) {}

  Backend* backend_;
  ReductionShape shape_;
  PositiveKind kind_;
  softfloat::Format output_;
  std::vector<std::int64_t> places_;  // empty: all rows
  std::int64_t calls_ = 0;
};

}  // namespace kvsim::gpu
