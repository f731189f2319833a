// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/engine/simd_level.h"
#include "sim/units/unit_errors.h"

/// Walks over a matrix from row to row with one SIMD lane for each column: what a column gets does
/// not depend on the width of the vectors. Searching scores each case in double-double and walks
/// the sums of its kernels, which has to cost no more than the kernels themselves.
namespace kvsim::fuzz {

/// A matrix of floats whose rows are filled up with zeros to whole vectors, aligned to nothing.
class ColumnMatrix {
 public:
  /// rows × columns from values[row × columns + column], or transposed: from
  /// values[column × rows + row].
  ColumnMatrix(std::span<const float> values, std::size_t rows, std::size_t columns,
               bool transposed);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  /// Numbers of a row, zeros included: what arrays by column must have room for.
  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] const float* row(std::size_t i) const { return values_.data() + i * stride_; }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::size_t stride_;
  std::vector<float> values_;
};

/// high[j] + low[j] += Σ_k a[k] · b[k][j] in double-double, in increasing k: every addition errs by
/// at most 2u² of its result, u = 2^−53 (sim/double_double.h). Each a[k] must be a float: products
/// of two floats are exact in binary64.
void add_long_products(std::span<const double> a, const ColumnMatrix& b, std::span<double> high,
                       std::span<double> low, SimdLevel level = best_simd_level());

/// sums[j] += Σ_k a[k] · |b[k][j]| in binary64, in increasing k.
void add_magnitudes(std::span<const double> a, const ColumnMatrix& b, std::span<double> sums,
                    SimdLevel level = best_simd_level());

/// One factor of a product, as far as it is known: the computed one is within `deviation` of
/// `value`, a power of two `alignment` is at least that of its exponent, and it is a multiple of
/// `quantum`.
struct WalkFactor {
  double value = 0;
  double deviation = 0;
  double alignment = 0;
  double quantum = 0;
};

/// What the other factors, those of the matrix, have in common.
struct WalkFormat {
  double smallest_normal = 0;
  double ulp_of_one = 0;  ///< 2^(1 − p)
  /// Sums stand for what they are; otherwise for a multiple of the computed ones that is not known,
  /// so that their exponents are not known either.
  bool exponents_known = true;
};

/// What a chain so far is multiplied by.
struct WalkRescaling {
  double factor = 1;   ///< of exact numbers
  double error = 0;    ///< relative, of the computed ones
  double quantum = 0;  ///< and at least that
};

/// A chain of blocks of a matrix unit, column by column, on its way.
struct UnitChain {
  explicit UnitChain(std::size_t stride) : partial(stride), slack(stride), bound(stride) {}

  std::vector<double> partial;  ///< the exact sum so far of `value`s
  std::vector<double> slack;    ///< by which the sum of what is added really may differ from it
  std::vector<double> bound;    ///< of the computed sum's error against the latter
};

/// Multiplies the chain so far, then goes on with it over rows first … first + factors.size() − 1
/// of b, in blocks of the unit, the last one filled up with zeros.
void walk_unit_chain(const UnitErrors& unit, std::span<const WalkFactor> factors,
                     const ColumnMatrix& b, std::size_t first, const WalkFormat& format,
                     const WalkRescaling& rescaling, UnitChain& chain,
                     SimdLevel level = best_simd_level());

}  // namespace kvsim::fuzz
