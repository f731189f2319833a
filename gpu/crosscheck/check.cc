// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace kvsim::gpu {
namespace {

constexpr auto operations =
    std::to_array<std::string_view>({"linear", "sum", "mean", "softmax", "rms-norm", "silu",
                                     "gelu-tanh", "rsqrt", "residual", "product", "sdpa", "eager"});

/// A linear layer of the model.
struct Layer {
  std::string_view label;
  std::int64_t outputs;
  std::int64_t terms;
};

std::vector<Layer> linear_layers(const DecoderShape& shape) {
  const std::int64_t queries = shape.query_heads * shape.head_dim;
  const std::int64_t keys = shape.kv_heads * shape.head_dim;
  const std::array all = {
      Layer{"query", queries, shape.hidden},  Layer{"key, value", keys, shape.hidden},
      Layer{"output", shape.hidden, queries}, Layer{"gate, up", shape.ffn, shape.hidden},
      Layer{"down", shape.hidden, shape.ffn}, Layer{"head", shape.vocabulary, shape.hidden}};
  std::vector<Layer> different;
  for (const Layer& layer : all) {
    const bool is_there = std::ranges::any_of(different, [&](const Layer& known) {
      return known.outputs == layer.outputs && known.terms == layer.terms;
    });
    if (!is_there) different.push_back(layer);
  }
  return different;
}

std::string_view activation_of(const DecoderShape& shape) {
  return shape.activation == GateActivation::silu ? "silu" : "gelu-tanh";
}

}  // namespace

std::span<const std::string_view> check_operations() { return operations; }

std::string size_text(const Check& check) {
  if (check.operation == "linear") {
    return fmt::format("M = {}, N = {}, K = {}", check.rows, check.outputs, check.terms);
  }
  if (!check.is_attention()) return fmt::format("{} × {}", check.rows, check.terms);
  return fmt::format("{}:{} heads of {}, {} quer{}, {} keys", check.heads, check.kv_heads,
                     check.head_dim, check.queries, check.queries == 1 ? "y" : "ies", check.keys);
}

std::vector<std::vector<std::int64_t>> input_shapes(const Check& check) {
  if (check.operation == "linear") {
    return {{check.rows, check.terms}, {check.outputs, check.terms}};
  }
  if (check.is_attention()) {
    const std::vector<std::int64_t> kv{check.kv_heads, check.keys, check.head_dim};
    return {{check.heads, check.queries, check.head_dim}, kv, kv};
  }
  const std::vector<std::int64_t> x{check.rows, check.terms};
  if (check.operation == "residual" || check.operation == "product") return {x, x};
  if (check.operation == "rms-norm" && check.has_weight) return {x, {check.terms}};
  return {x};
}

std::int64_t output_count(const Check& check) {
  if (check.operation == "linear") return check.rows * check.outputs;
  if (check.operation == "sum" || check.operation == "mean") return check.rows;
  if (check.is_attention()) return check.heads * check.queries * check.head_dim;
  return check.rows * check.terms;
}

std::vector<Check> model_checks(const DecoderShape& shape, const softfloat::Format& format,
                                const CheckSizes& sizes) {
  std::vector<Check> checks;
  for (const Layer& layer : linear_layers(shape)) {
    std::int64_t outputs = layer.outputs;
    if (outputs > sizes.most_outputs) {
      outputs = sizes.most_outputs / 64 * 64 + layer.outputs % 64;
    }
    for (const std::int64_t rows : sizes.rows) {
      checks.push_back({.label = std::string(layer.label),
                        .operation = "linear",
                        .format = format,
                        .rows = rows,
                        .outputs = outputs,
                        .terms = layer.terms});
    }
  }
  const std::int64_t rows = sizes.rows.back();
  const auto add = [&](std::string_view label, std::string_view operation, std::int64_t count,
                       std::int64_t terms) {
    checks.push_back({.label = std::string(label),
                      .operation = std::string(operation),
                      .format = operation == "rsqrt" ? softfloat::Format{8, 24, 127} : format,
                      .rows = count,
                      .terms = terms,
                      .epsilon = shape.norm_epsilon,
                      .plus_one = shape.norm_weight_plus_one});
  };
  add("sum", "sum", rows, shape.hidden);
  add("mean", "mean", rows, shape.hidden);
  add("norm", "rms-norm", rows, shape.hidden);
  if (shape.qk_norm) add("query-norm", "rms-norm", rows * shape.query_heads, shape.head_dim);
  add("norm", "rsqrt", rows, 1);
  add("attention", "softmax", rows * shape.query_heads, sizes.keys);
  add("activation", activation_of(shape), rows, shape.ffn);
  add("gate", "product", rows, shape.ffn);
  add("residual", "residual", rows, shape.hidden);
  for (const char* const operation : {"sdpa", "eager"}) {
    for (const std::int64_t queries : {std::int64_t{1}, sizes.keys}) {
      checks.push_back({.label = queries == 1 ? "decode" : "prefill",
                        .operation = operation,
                        .format = format,
                        .heads = shape.query_heads,
                        .kv_heads = shape.kv_heads,
                        .head_dim = shape.head_dim,
                        .queries = queries,
                        .keys = sizes.keys});
      if (sizes.keys == 1) break;
    }
  }
  return checks;
}

}  // namespace kvsim::gpu
