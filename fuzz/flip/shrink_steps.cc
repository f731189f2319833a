// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/shrink_steps.h"

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "fuzz/flip/ranges.h"

namespace kvsim::fuzz {
namespace {

/// How a tensor lies along an axis: [outer][length][inner].
struct Layout {
  std::int64_t outer = 0;
  std::int64_t inner = 0;
};

/// outer = 0: the tensor has no such axis.
Layout layout_of(const CaseShape& shape, CaseTensor tensor, CaseAxis axis) {
  const AttentionShape& sizes = shape.attention;
  const std::int64_t d = sizes.head_dim;
  const bool tokens = tensor == CaseTensor::tokens;
  const bool of_keys = tensor == CaseTensor::k || tensor == CaseTensor::v;
  switch (axis) {
    case CaseAxis::terms:
      return {tokens ? 2 : 1, 1};
    case CaseAxis::keys:
      return {of_keys ? sizes.kv_heads : 0, d};
    case CaseAxis::dimensions:
      return {of_keys ? sizes.kv_heads * sizes.kv_len : (tokens ? 2 : 1) * sizes.query_heads, 1};
    case CaseAxis::group_heads:
      return {of_keys ? 0 : (tokens ? 2 : 1) * sizes.kv_heads, d};
    case CaseAxis::kv_heads:
      break;
  }
  return {tokens ? 2 : 1, (of_keys ? sizes.kv_len : sizes.group()) * d};
}

std::vector<float> erased(const std::vector<float>& values, const Layout& layout,
                          std::int64_t length, const CasePart& part) {
  std::vector<float> result;
  result.reserve(values.size());
  const std::int64_t row = length * layout.inner;
  for (std::int64_t i = 0; i < layout.outer; ++i) {
    const auto first = values.begin() + i * row;
    result.insert(result.end(), first, first + part.begin * layout.inner);
    result.insert(result.end(), first + (part.begin + part.count) * layout.inner, first + row);
  }
  return result;
}

void shorten(CaseShape& shape, CaseAxis axis, std::int64_t count) {
  AttentionShape& sizes = shape.attention;
  switch (axis) {
    case CaseAxis::terms:
      shape.terms -= count;
      return;
    case CaseAxis::keys:
      sizes.kv_len -= count;
      return;
    case CaseAxis::dimensions:
      sizes.head_dim -= count;
      return;
    case CaseAxis::group_heads:
      sizes.query_heads -= count * sizes.kv_heads;
      return;
    case CaseAxis::kv_heads:
      sizes.query_heads -= count * sizes.group();
      sizes.kv_heads -= count;
      return;
  }
}

}  // namespace

std::int64_t length_along(const CaseShape& shape, CaseAxis axis) {
  const AttentionShape& sizes = shape.attention;
  if ((axis == CaseAxis::terms) != (shape.kind == CaseKind::sum)) return 0;
  switch (axis) {
    case CaseAxis::terms:
      return shape.terms;
    case CaseAxis::keys:
      return sizes.kv_len;
    case CaseAxis::dimensions:
      return sizes.head_dim;
    case CaseAxis::group_heads:
      return sizes.group();
    case CaseAxis::kv_heads:
      break;
  }
  return sizes.kv_heads;
}

FlipCase without(const FlipCase& flip_case, CaseAxis axis, const CasePart& part) {
  FlipCase result;
  result.shape = flip_case.shape;
  result.floor = flip_case.floor;
  const std::int64_t length = length_along(flip_case.shape, axis);
  shorten(result.shape, axis, part.count);
  for (std::size_t t = 0; t < case_tensors; ++t) {
    const auto tensor = static_cast<CaseTensor>(t);
    const Layout layout = layout_of(flip_case.shape, tensor, axis);
    const bool keeps = layout.outer == 0 || flip_case[tensor].empty();
    result[tensor] = keeps ? flip_case[tensor] : erased(flip_case[tensor], layout, length, part);
  }
  if (axis != CaseAxis::dimensions) return result;
  const ValueFitter fitter(flip_case.shape.storage);
  const double factor =
      std::sqrt(static_cast<double>(length - part.count) / static_cast<double>(length));
  for (float& x : result[CaseTensor::q]) {
    x = fitter.fit(CaseTensor::q, static_cast<double>(x) * factor);
  }
  return result;
}

float cut_to_bits(float x, int bits) {
  if (bits == 0) return 0;
  int exponent = 0;
  const float significand = std::frexp(x, &exponent);
  return std::ldexp(std::trunc(std::ldexp(significand, bits)), exponent - bits);
}

FlipCase with_fewer_bits(const FlipCase& flip_case, CaseTensor tensor, const CasePart& part,
                         int bits) {
  FlipCase result = flip_case;
  for (std::int64_t i = part.begin; i < part.begin + part.count; ++i) {
    float& x = result[tensor][static_cast<std::size_t>(i)];
    x = cut_to_bits(x, bits);
  }
  return result;
}

FlipCase with_fewer_bits(const FlipCase& flip_case, CaseAxis axis, const CasePart& part, int bits) {
  FlipCase result = flip_case;
  const std::int64_t length = length_along(flip_case.shape, axis);
  for (std::size_t t = 0; t < case_tensors; ++t) {
    const auto tensor = static_cast<CaseTensor>(t);
    if (flip_case[tensor].empty()) continue;
    const Layout layout = layout_of(flip_case.shape, tensor, axis);
    for (std::int64_t i = 0; i < layout.outer; ++i) {
      const std::int64_t first = (i * length + part.begin) * layout.inner;
      for (std::int64_t j = first; j < first + part.count * layout.inner; ++j) {
        float& x = result[tensor][static_cast<std::size_t>(j)];
        x = cut_to_bits(x, bits);
      }
    }
  }
  return result;
}

CaseShape with_splits(const CaseShape& shape, std::size_t path, std::int64_t splits) {
  CaseShape result = shape;
  if (shape.kind == CaseKind::attention) {
    result.kernels[path].splits = splits;
    return result;
  }
  for (OrderItem& item : result.orders[path].items) {
    if (item.kind != OrderKind::split || item.size <= splits) continue;
    item.size = splits;
    break;
  }
  return result;
}

}  // namespace kvsim::fuzz
