// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/attention_calls.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "gpu/operators.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
bool AttentionLayer::causal() const {
  const auto found = attributes.find("causal");
  return found != attributes.end() && found->second == "1";
}

double AttentionLayer::scale() const {
  const OperatorCall call{.operation = "sdpa", .attributes = attributes};
  const auto given = number_attribute(call, "scale", 0);
  if (given && *given > 0) return *given;
  return 1 / std::sqrt(static_cast<double>(shape.head_dim));
}

AttentionOperands zero_operands(const AttentionShape& shape) {
  AttentionOperands operands;
  operands.q.resize(index(shape.query_heads * shape.query_len * shape.head_dim));
  operands.k.resize(index(shape.kv_heads * shape.kv_len * shape.head_dim));
  operands.v.resize(operands.k.size());
  return operands;
}

AttentionCalls::AttentionCalls(Backend& backend, AttentionLayer layer)
    : backend_(backend), layer_(std::move(layer)), output_(layer_.format) {}

std::string AttentionCalls::description() const {
  const auto plural = [](std::int64_t n) { return n == 1 ? "" : "s"; };
  return fmt::format("sdpa of {}, {} head{}, {} K/V head{}, {} quer{}, {} key{}, head_dim {}, {}",
                     backend_.name(), shape().query_heads, plural(shape().query_heads),
                     shape().kv_heads, plural(shape().kv_heads), shape().query_len,
                     shape().query_len == 1 ? "y" : "ies", shape().kv_len, plural(shape().kv_len),
                     shape().head_dim, softfloat::format_name(layer_.format));
}

OperatorCall attention_call(const AttentionLayer& layer, AttentionOperands operands,
                            std::int64_t misalignment) {
  const AttentionShape& shape = layer.shape;
  OperatorCall call{.operation = "sdpa", .attributes = layer.attributes};
  call.inputs.push_back({.format = layer.format,
                         .shape = {shape.query_heads, shape.query_len, shape.head_dim},
                         .values = std::move(operands.q)});
  for (std::vector<float>* const values : {&operands.k, &operands.v}) {
    call.inputs.push_back({.format = layer.format,
                           .shape = {shape.kv_heads, shape.kv_len, shape.head_dim},
                           .values = std::move(*values),
                           .misalignment = misalignment});
  }
  return call;
}

Result<std::vector<float>> AttentionCalls::run(AttentionOperands operands,
                                               std::int64_t misalignment) {
  ++calls_;
  auto result = backend_.run(attention_call(layer_, std::move(operands), misalignment));
  if (!result) return result.error();
  output_ = result->format;
  const std::size_t expected = index(shape().query_heads * shape().query_len * shape().head_dim);
  if (result->values.size() != expected) {
    return Error{ErrorKind::file, fmt::format("{}: {} numbers came back in place of {}",
                                              description(), result->values.size(), expected)};
  }
  return std::move(result->values);
}

}  // namespace kvsim::gpu
