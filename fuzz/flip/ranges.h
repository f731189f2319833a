// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <string_view>

#include "fuzz/flip/case.h"
#include "fuzz/flip/random.h"

/// The numbers that a search may use: those that real models have.
namespace kvsim::fuzz {

/// Numbers of one tensor.
struct ValueRange {
  double largest = 1;  ///< of the magnitude
  double root_mean_square = 1;
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

/// Makes numbers of a case acceptable: of the storage format, within the range, not subnormal.
class ValueFitter {
 public:
  explicit ValueFitter(const softfloat::Format& storage);

  /// x rounded to storage, ties to even; the nearest number of the range where it is beyond it. A
  /// number closer to 0 than the smallest normal one becomes 0. A NaN becomes 0.
  [[nodiscard]] float fit(CaseTensor tensor, double x) const;
  [[nodiscard]] double largest(CaseTensor tensor) const {
    return largest_[static_cast<std::size_t>(tensor)];
  }
  [[nodiscard]] double smallest() const { return smallest_; }
  [[nodiscard]] const softfloat::Format& storage() const { return storage_; }

  /// A case as plain random search draws it: independent normal numbers of the range's root mean
  /// square.
  [[nodiscard]] FlipCase random_case(const CaseShape& shape, Random& random) const;

 private:
  softfloat::Format storage_;
  double smallest_;
  std::array<double, case_tensors> largest_{};
};

}  // namespace kvsim::fuzz
