// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "fuzz/flip/case.h"
#include "fuzz/flip/random.h"

/// The numbers that a search may use: those that real models have.
namespace kvsim::fuzz {

/// Numbers of one tensor.
struct ValueRange {
  double largest = 1;  ///< of the magnitude
  double root_mean_square = 1;

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

/// Measured (evidence: measured, one model each). q, k, v: SmolLM2-135M-Instruct, layers 0, 15 and
/// 29 over the first 256 tokens of GSM8K text, RoPE applied, 1 ÷ √head_dim not: the largest
/// magnitude of the three layers, and the root mean square of layer 15. state: as v, since outputs
/// of attention are means of values. tokens: the output matrix of SmolLM2-135M (bfloat16).
inline constexpr std::string_view default_range_source =
    "SmolLM2-135M-Instruct on GSM8K, layers 0, 15 and 29 (q, k, v), and its output matrix (tokens)";

/// The default range of a tensor.
[[nodiscard]] constexpr ValueRange default_range(CaseTensor tensor) {
  switch (tensor) {
    case CaseTensor::q:
      return {19.703125, 1.934};
    case CaseTensor::k:
      return {19.140625, 2.261};
    case CaseTensor::state:
    case CaseTensor::v:
      return {10.8515625, 0.752};
    case CaseTensor::tokens:
      break;
  }
  return {1.9609375, 0.1215};
}

/// The numbers of all tensors.
struct ValueRanges {
  std::array<ValueRange, case_tensors> tensors;  ///< as FlipCase::tensors
  std::string source;                            ///< for people: where they were measured
  bool subnormals = false;                       ///< subnormal numbers may be used, too

  [[nodiscard]] const ValueRange& operator[](CaseTensor t) const {
    return tensors[static_cast<std::size_t>(t)];
  }
};

/// default_range() of every tensor, and no subnormal numbers.
[[nodiscard]] ValueRanges default_ranges();

/// Those of the q, k and v that a safetensors file holds (model/attention_tensors.h); `state` is as
/// v, `tokens` keeps its default. Errors: of the reader; a number that is NaN or infinite, a tensor
/// of zeros (usage).
[[nodiscard]] Result<ValueRanges> captured_ranges(const std::string& path);

/// Makes numbers of a case acceptable: of the storage format, within the range, and not subnormal
/// unless that was asked for.
class ValueFitter {
 public:
  explicit ValueFitter(const softfloat::Format& storage, ValueRanges ranges = default_ranges());

  /// x rounded to storage, ties to even; the nearest number of the range where it is beyond it. A
  /// number closer to 0 than the smallest that may be used becomes 0. A NaN becomes 0.
  [[nodiscard]] float fit(CaseTensor tensor, double x) const;
  [[nodiscard]] double largest(CaseTensor tensor) const {
    return largest_[static_cast<std::size_t>(tensor)];
  }
  /// The smallest magnitude that may be used, a power of two.
  [[nodiscard]] double smallest() const { return smallest_; }
  [[nodiscard]] const softfloat::Format& storage() const { return storage_; }

  /// A case as plain random search draws it: independent normal numbers of the range's root mean
  /// square.
  [[nodiscard]] FlipCase random_case(const CaseShape& shape, Random& random) const;

 private:
  softfloat::Format storage_;
  ValueRanges ranges_;
  double smallest_normal_;
  double smallest_;
  std::array<double, case_tensors> largest_{};
};

}  // namespace kvsim::fuzz
