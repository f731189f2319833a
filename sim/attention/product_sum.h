// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/engine/matrix.h"
#include "sim/order.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::attention {

/// The matrices of one product, out[i][j] = Σ_k a[i][k] × b[k][j].
struct Factors {
  std::int64_t rows = 0;
  std::int64_t terms = 0;
  std::int64_t columns = 0;
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  NumberPointer b = {};
  std::int64_t b_stride = 0;
  bool b_transposed = false;  ///< b[j × b_stride + k] instead of b[k × b_stride + j]
  const float* c = nullptr;   ///< addend of a matrix unit's chain; null: +0
  std::int64_t c_stride = 0;
  std::span<const std::byte> read_next = {};  ///< as UnitProblem::read_next
};

/// How one of a kernel's two products is summed: on a matrix unit, or in an order with binary32
/// accumulators.
class ProductSum {
 public:
  /// From the text in a row of StorageSums, for factors of format `input`. Errors of parse_order
  /// and find_matrix_unit.
  static Result<ProductSum> parse(std::string_view text, Product product,
                                  const softfloat::Format& input);

  /// out[i × out_stride + j]; `out` may be factors.c with the same stride.
  [[nodiscard]] Result<bool> multiply(const Factors& factors, float* out, std::int64_t out_stride,
                                      const EngineOptions& options) const;

  /// The unit, or null where there is none.
  [[nodiscard]] const MatrixUnit* unit() const { return unit_; }
  /// The order, where there is no unit.
  [[nodiscard]] const Order& order() const { return order_; }
  /// The format of the results.
  [[nodiscard]] softfloat::Format output() const;

 private:
  const MatrixUnit* unit_ = nullptr;
  Order order_;
  Product product_ = Product::rounded;
  softfloat::Format input_;
};

}  // namespace kvsim::attention
