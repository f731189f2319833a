// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/printable.h"
#include "cli/replay/operators.h"
#include "cli/replay/settings.h"
#include "sim/engine/columns.h"
#include "sim/engine/matrix.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Format;

/// x [rows, terms], w [terms, outputs] (turned from the file's [outputs, terms]), bias [outputs].
struct LinearTensors {
  Format format;
  std::int64_t rows = -1;
  std::int64_t terms = -1;
  std::int64_t outputs = -1;
  std::vector<float> x, w, bias;  ///< no bias: empty
};

/// [rows][columns] as [columns][rows].
std::vector<float> transposed(const std::vector<float>& in, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> out(in.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      out[static_cast<std::size_t>(j * rows + i)] = in[static_cast<std::size_t>(i * columns + j)];
    }
  }
  return out;
}

Result<LinearTensors> read_tensors(const ReplayFile& file) {
  LinearTensors out;
  std::int64_t x_shape[] = {-1, -1};
  Result<TensorValues> x = file.values("x", x_shape, "[rows, terms]");
  if (!x) return x.error();
  std::int64_t w_shape[] = {-1, x_shape[1]};
  Result<TensorValues> w =
      file.values("w", w_shape, fmt::format("[outputs, {}], terms as of x,", x_shape[1]));
  if (!w) return w.error();
  if (w->format != x->format) {
    return Error{ErrorKind::usage,
                 fmt::format("{}: x is {} and w is {}; one format is accepted (or --input FORMAT)",
                             printable(file.path()), softfloat::format_name(x->format),
                             softfloat::format_name(w->format))};
  }
  if (file.has("bias")) {
    Result<TensorValues> bias = file.values("bias", std::span(w_shape).first(1),
                                            fmt::format("[{}], the outputs of w,", w_shape[0]));
    if (!bias) return bias.error();
    out.bias = std::move(bias->values);
  }
  out.format = x->format;
  out.rows = x_shape[0];
  out.terms = x_shape[1];
  out.outputs = w_shape[0];
  out.x = std::move(x->values);
  out.w = transposed(w->values, out.outputs, out.terms);
  return out;
}

/// How --order computes: formats and products.
struct OrderArithmetic {
  Format accumulator;
  Format result;
  Product product = Product::rounded;
};

Result<std::vector<float>> run_order(const LinearTensors& tensors, const Order& order,
                                     const OrderArithmetic& arithmetic,
                                     const EngineOptions& engine) {
  MatrixProblem problem;
  problem.order = order;
  problem.product = arithmetic.product;
  problem.input = tensors.format;
  problem.accumulator = arithmetic.accumulator;
  problem.rows = tensors.rows;
  problem.terms = tensors.terms;
  problem.columns = tensors.outputs;
  problem.a = tensors.x.data();
  problem.a_stride = tensors.terms;
  problem.b = tensors.w.data();
  problem.b_stride = tensors.outputs;
  std::vector<float> out(static_cast<std::size_t>(tensors.rows * tensors.outputs));
  const Result<bool> done = sum_matrix(problem, out.data(), tensors.outputs, engine);
  if (!done) return done.error();
  if (!tensors.bias.empty()) {
    // One addition in the accumulator's format; the bias is rounded to it first.
    const Format& format = arithmetic.accumulator;
    const auto code = [&](float value) {
      return softfloat::convert(format, softfloat::binary32, softfloat::from_float(value)).bits;
    };
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float bias = tensors.bias[i % tensors.bias.size()];
      out[i] = softfloat::to_float(format, softfloat::add(format, code(out[i]), code(bias)).bits);
    }
  }
  const Result<bool> rounded = round_values(arithmetic.result, out, out, engine.level);
  if (!rounded) return rounded.error();
  return out;
}

Result<Replay> replay_linear(const ParsedOptions& options, const ReplayFile& file) {
  const Result<std::vector<Order>> orders = order_options(options);
  if (!orders) return orders.error();
  if (orders->empty()) {
    return Error{ErrorKind::usage, "replay linear has no --order; --order ORDER is accepted"};
  }
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<LinearTensors> tensors = read_tensors(file);
  if (!tensors) return tensors.error();
  const Result<Format> accumulator = format_option(options, "--accumulate", softfloat::binary32);
  if (!accumulator) return accumulator.error();
  const Result<Format> result = result_format(options, tensors->format);
  if (!result) return result.error();
  const Result<Product> product = product_option(options);
  if (!product) return product.error();

  Replay replay;
  replay.operator_name = "linear";
  replay.shape = {tensors->rows, tensors->outputs};
  replay.heads = tensors->rows;
  replay.positions = tensors->outputs;
  replay.head_name = "row";
  replay.position_name = "output";
  replay.input = Json::object();
  replay.input["input"] = softfloat::format_name(tensors->format);
  replay.input["sizes"] = {
      {"rows", tensors->rows}, {"terms", tensors->terms}, {"outputs", tensors->outputs}};
  replay.input["bias"] = !tensors->bias.empty();
  replay.facts.emplace_back(
      "tensors",
      fmt::format("x [{}, {}], w [{}, {}]{}, {}", tensors->rows, tensors->terms, tensors->outputs,
                  tensors->terms,
                  tensors->bias.empty() ? "" : fmt::format(", bias [{}]", tensors->outputs),
                  softfloat::format_name(tensors->format)));
  const OrderArithmetic arithmetic{*accumulator, *result, *product};
  for (const Order& order : *orders) {
    const Result<std::vector<float>> out = run_order(*tensors, order, arithmetic, *engine);
    if (!out) {
      return Error{out.error().kind,
                   fmt::format("--order {}: {}", to_string(order), out.error().message)};
    }
    ReplayOutput output;
    output.name = to_string(order);
    output.format = *result;
    output.bytes = encode_values(*result, *out);
    replay.input["orders"].push_back(output.name);
    replay.outputs.push_back(std::move(output));
  }
  replay.input["accumulate"] = softfloat::format_name(*accumulator);
  replay.input["product"] = product_name(*product);
  replay.input["round_to"] = softfloat::format_name(*result);
  replay.facts.emplace_back(
      "sums",
      fmt::format("{}, products {}, results rounded to {}", softfloat::format_name(*accumulator),
                  product_name(*product), softfloat::format_name(*result)));
  if (orders->size() == 1) replay.facts.emplace_back("order", replay.outputs.front().name);
  return replay;
}

constexpr std::array<std::string_view, 5> linear_options{"--order", "--input", "--accumulate",
                                                         "--product", "--round-to"};

}  // namespace

const ReplayOperator linear_operator{
    .name = "linear",
    .tensors = "x [rows, terms] and w [outputs, terms], as checkpoints hold it; bias [outputs]",
    .options = linear_options,
    .run = replay_linear,
};

}  // namespace kvsim
