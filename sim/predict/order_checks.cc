// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/order_checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

Result<bool> check_shape(const AttentionShape& shape) {
  constexpr std::int64_t limit = std::int64_t{1} << 20;
  const std::pair<const char*, std::int64_t> sizes[] = {{"query heads", shape.query_heads},
                                                        {"kv-heads", shape.kv_heads},
                                                        {"query-len", shape.query_len},
                                                        {"kv-len", shape.kv_len},
                                                        {"head-dim", shape.head_dim}};
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > limit) {
      return Error{ErrorKind::usage, fmt::format("{} is {}; accepted: 1 to {}", name, size, limit)};
    }
  }
  if (shape.query_heads % shape.kv_heads != 0) {
    return Error{ErrorKind::usage,
                 fmt::format("query heads is {}; accepted: a multiple of kv-heads, {}",
                             shape.query_heads, shape.kv_heads)};
  }
  if (shape.query_len > shape.kv_len) {
    return Error{ErrorKind::usage, fmt::format("query-len is {}; accepted: at most kv-len, {}",
                                               shape.query_len, shape.kv_len)};
  }
  const double work = 2.0 * static_cast<double>(shape.query_heads * shape.query_len) *
                      static_cast<double>(shape.kv_len) * static_cast<double>(shape.head_dim);
  if (work > static_cast<double>(max_multiply_adds)) {
    return Error{ErrorKind::usage,
                 fmt::format("query heads × query-len × kv-len × head-dim × 2 is {:.3g} "
                             "multiply-adds; accepted: at most {:.3g}",
                             work, static_cast<double>(max_multiply_adds))};
  }
  return true;
}

Result<bool> check_order(const Order& order, const softfloat::Format& accumulator, std::int64_t n) {
  if (unit_of(order)) {
    return Error{ErrorKind::usage, "matrix units sum in kernels; accepted: an order without mma"};
  }
  // Controls run the same orders with a binary32 accumulator.
  for (const softfloat::Format& f : {accumulator, softfloat::binary32}) {
    if (Result<bool> fits = check_formats(order, f, f); !fits) return fits;
  }
  return check_length(order, n);
}

Result<bool> check_variant(const OrderedVariant& variant, const AttentionShape& shape,
                           const softfloat::Format& accumulator) {
  const auto check = [&](const Order& order, const char* sum, std::int64_t n) -> Result<bool> {
    Result<bool> fits = check_order(order, accumulator, n);
    if (fits) return true;
    return Error{fits.error().kind, fmt::format("order {} cannot sum {}: {}", to_string(order), sum,
                                                fits.error().message)};
  };
  if (auto fits = check(variant.orders.scores, "q·k over head-dim", shape.head_dim); !fits) {
    return fits;
  }
  for (std::int64_t i = 0; i < shape.query_len; ++i) {
    const std::int64_t keys = shape.visible_keys(i);
    if (auto fits = check(variant.orders.row_sum, "the row sum", keys); !fits) return fits;
    if (auto fits = check(variant.orders.values, "P·V", keys); !fits) return fits;
  }
  return true;
}

Result<bool> check_arithmetic(const AttentionArithmetic& arithmetic) {
  for (const softfloat::Format& format : {arithmetic.storage, arithmetic.accumulator}) {
    if (format.has_sign && format.has_zero() && format.precision >= 2) continue;
    return Error{ErrorKind::usage,
                 fmt::format("format {} has no sign and no zero; accepted: every other format",
                             softfloat::format_name(format))};
  }
  return true;
}

}  // namespace

Result<bool> check_order_study(const OrderStudyOptions& options) {
  if (auto fits = check_shape(options.shape); !fits) return fits;
  if (auto fits = check_arithmetic(options.arithmetic); !fits) return fits;
  if (options.variants.empty()) {
    return Error{ErrorKind::usage, "no order to predict; accepted: at least one"};
  }
  for (const OrderedVariant& variant : options.variants) {
    if (auto fits = check_variant(variant, options.shape, options.arithmetic.accumulator); !fits)
      return fits;
  }
  return true;
}

}  // namespace kvsim
