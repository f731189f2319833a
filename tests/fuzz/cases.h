// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>

#include "fuzz/flip/case.h"
#include "sim/order.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {

/// Dot products of binary16 numbers in two orders.
inline CaseShape sum_shape(std::int64_t terms, const std::string& on, const std::string& off,
                           const softfloat::Format& accumulator) {
  CaseShape shape;
  shape.kind = CaseKind::sum;
  shape.terms = terms;
  shape.accumulator = accumulator;
  shape.orders = {parse_order(on).value(), parse_order(off).value()};
  return shape;
}

/// Attention of one query head whose keys are split against the whole sequence at once.
inline CaseShape attention_shape(std::int64_t head_dim, std::int64_t keys,
                                 const std::string& kernel, std::int64_t splits) {
  CaseShape shape;
  shape.kind = CaseKind::attention;
  shape.attention = {
      .query_heads = 2, .kv_heads = 1, .query_len = 1, .kv_len = keys, .head_dim = head_dim};
  shape.kernels = {KernelPath{kernel, false, splits}, KernelPath{kernel, true, 1}};
  return shape;
}

/// In binary16, 1 + 2^-11 ties to 1 as often as it is added, while four of them together count:
/// worked out by hand. Token 0 has 1 and then eight times 2^-11, exactly 1 + 2^-8; token 1 has
/// 1 + 2^-10 by its first and its last term. In sequence token 0 gets 1; in pairs it gets 1 + 2^-8.
inline FlipCase planted_flip() {
  CaseShape shape = sum_shape(16, "sequential", "pairwise", softfloat::binary16);
  FlipCase result = empty_case(shape);
  for (float& x : result[CaseTensor::state]) x = 1;
  auto& tokens = result[CaseTensor::tokens];
  tokens[0] = 1;
  for (std::size_t k = 8; k < 16; ++k) tokens[k] = 0x1p-11F;
  tokens[16] = 1;
  tokens[31] = 0x1p-10F;
  return result;
}

}  // namespace kvsim::fuzz
