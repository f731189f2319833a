// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/product_sum.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim::attention {

Result<ProductSum> ProductSum::parse(std::string_view text, Product product,
                                     const softfloat::Format& input) {
  constexpr std::string_view on_unit = "mma(";
  ProductSum sum;
  sum.product_ = product;
  sum.input_ = input;
  if (text.starts_with(on_unit) && text.ends_with(')')) {
    const std::string_view name = text.substr(on_unit.size(), text.size() - on_unit.size() - 1);
    sum.unit_ = find_matrix_unit(name);
    if (sum.unit_ == nullptr) {
      return Error{ErrorKind::usage, fmt::format("matrix unit {}: unknown", name)};
    }
    return sum;
  }
  Result<Order> order = parse_order(text);
  if (!order) return order.error();
  sum.order_ = std::move(order.value());
  return sum;
}

softfloat::Format ProductSum::output() const {
  return unit_ == nullptr ? softfloat::binary32 : unit_->output;
}

Result<bool> ProductSum::multiply(const Factors& factors, float* out, std::int64_t out_stride,
                                  const EngineOptions& options) const {
  if (unit_ != nullptr) {
    return multiply_on_unit({.unit = unit_,
                             .rows = factors.rows,
                             .terms = factors.terms,
                             .columns = factors.columns,
                             .a = factors.a,
                             .a_stride = factors.a_stride,
                             .b = factors.b,
                             .b_stride = factors.b_stride,
                             .b_transposed = factors.b_transposed,
                             .c = factors.c,
                             .c_stride = factors.c_stride,
                             .read_next = factors.read_next},
                            out, out_stride, options);
  }
  const MatrixProblem problem{.order = order_,
                              .product = product_,
                              .input = input_,
                              .accumulator = softfloat::binary32,
                              .rows = factors.rows,
                              .terms = factors.terms,
                              .columns = factors.columns,
                              .a = factors.a,
                              .a_stride = factors.a_stride,
                              .b = factors.b,
                              .b_stride = factors.b_stride,
                              .b_transposed = factors.b_transposed,
                              .c = factors.c,
                              .c_stride = factors.c_stride};
  return sum_matrix(problem, out, out_stride, options);
}

}  // namespace kvsim::attention
