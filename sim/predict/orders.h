// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/attention_arithmetic.h"
#include "sim/attention_shape.h"
#include "sim/engine/simd_level.h"
#include "sim/error_summary.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// How far rounding moves decode attention: the same inputs under several summation orders, each
/// stage alone and all of them in a row, against the exact result and beside rigorous bounds.
namespace kvsim {

/// One line of the prediction: orders with the name that the report prints.
struct OrderedVariant {
  std::string name;
  AttentionOrders orders;
};

/// The inputs as exact values of the storage format, row-major: q [query_heads, query_len,
/// head_dim], k and v [kv_heads, kv_len, head_dim]. Every value must be finite.
struct AttentionValues {
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
};

struct OrderStudyOptions {
  AttentionShape shape;
  AttentionArithmetic arithmetic;
  std::vector<OrderedVariant> variants;  ///< at least one
  int threads = 1;                       ///< changes time, never a result
  SimdLevel simd = best_simd_level();    ///< changes time, never a result
  /// Called now and then with the finished share, 0 … 1, from one thread at a time. May be empty.
  std::function<void(double)> progress;
};

/// The orders that `predict` compares when none are named.
[[nodiscard]] std::vector<OrderedVariant> default_variants();

/// The parts of attention that are measured alone. Each reads the exact result of the part before,
/// rounded as the arithmetic says, and is compared with the exact result on that input.
enum class Stage : std::uint8_t {
  scores,     ///< q·k × 1/√head_dim
  row_sum,    ///< Σ exp(score − largest score)
  softmax,    ///< exp(score − largest score) ÷ row sum
  values,     ///< P·V
  attention,  ///< all of it in a row, compared with exact attention
};

/// "scores", "row sum", "softmax", "P·V", "attention".
[[nodiscard]] std::string_view to_string(Stage stage);

/// One stage under one variant.
struct StageReport {
  Stage stage = Stage::scores;
  std::string variant;
  softfloat::Format format;  ///< of the elements; max_ulp counts in it
  ErrorSummary error;
};

/// How many elements of a stage differ in their bits between two variants.
struct DifferenceCount {
  Stage stage = Stage::attention;
  std::int64_t elements = 0;
  /// [variants][variants], symmetric, diagonal 0.
  std::vector<std::vector<std::int64_t>> differing;
};

/// Attention computed in another way, to say where the error comes from.
struct ControlReport {
  std::string name;
  std::string meaning;  ///< one clause
  softfloat::Format format;
  ErrorSummary error;
};

struct OrderStudy {
  OrderStudyOptions options;                 ///< as run, without `progress`
  std::vector<StageReport> stages;           ///< for each stage, each variant in order
  std::vector<DifferenceCount> differences;  ///< one for each stage
  std::vector<ControlReport> controls;
  bool bounds_hold = true;  ///< every error of a finite element within its bounds
};

/// Most multiply-adds of one variant that predict accepts.
inline constexpr std::int64_t max_multiply_adds = std::int64_t{1} << 42;

/// Runs the prediction. Errors (usage): sizes below 1 or that do not fit each other, an order that
/// cannot sum its number of terms, more than max_multiply_adds, formats that cannot accumulate.
[[nodiscard]] Result<OrderStudy> study_orders(const OrderStudyOptions& options,
                                              const AttentionValues& inputs);

}  // namespace kvsim
