// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/kernels/own_linear.h"
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

struct KernelRun {
  std::vector<float> values;
  LinearPlan plan;
};

Result<KernelRun> run_kernel(const LinearTensors& tensors, const LinearKernel& kernel,
                             std::int64_t multiprocessors, const EngineOptions& engine) {
  LinearProblem problem;
  problem.rows = tensors.rows;
  problem.outputs = tensors.outputs;
  problem.terms = tensors.terms;
  problem.storage = tensors.format;
  problem.multiprocessors = multiprocessors;
  problem.x = tensors.x.data();
  problem.x_stride = tensors.terms;
  problem.w = tensors.w.data();
  problem.w_stride = tensors.outputs;
  problem.bias = tensors.bias.empty() ? nullptr : tensors.bias.data();
  const Result<LinearPlan> plan = plan_linear(
      kernel, {tensors.rows, tensors.outputs, tensors.terms, tensors.format, multiprocessors});
  if (!plan) return plan.error();
  KernelRun run{std::vector<float>(static_cast<std::size_t>(tensors.rows * tensors.outputs)),
                *plan};
  const Result<bool> done =
      apply_linear(kernel, problem, run.values.data(), tensors.outputs, engine);
  if (!done) return done.error();
  return run;
}

/// Adds the results of every order.
std::optional<Error> add_orders(const ParsedOptions& options, const LinearTensors& tensors,
                                const std::vector<Order>& orders, const EngineOptions& engine,
                                Replay& replay) {
  const Result<Format> accumulator = format_option(options, "--accumulate", softfloat::binary32);
  if (!accumulator) return accumulator.error();
  const Result<Format> result = result_format(options, tensors.format);
  if (!result) return result.error();
  const Result<Product> product = product_option(options);
  if (!product) return product.error();
  for (const Order& order : orders) {
    const Result<std::vector<float>> out =
        run_order(tensors, order, {*accumulator, *result, *product}, engine);
    if (!out) {
      return Error{out.error().kind,
                   fmt::format("--order {}: {}", printable(to_string(order)), out.error().message)};
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
      "sums of --order",
      fmt::format("{}, products {}, results rounded to {}", softfloat::format_name(*accumulator),
                  product_name(*product), softfloat::format_name(*result)));
  return std::nullopt;
}

/// Adds the results of every kernel.
std::optional<Error> add_kernels(const ParsedOptions& options, const LinearTensors& tensors,
                                 const std::vector<const LinearKernel*>& kernels,
                                 const EngineOptions& engine, Replay& replay) {
  const Result<std::int64_t> multiprocessors =
      integer_option(options, "--multiprocessors", 0, 0, 4096);
  if (!multiprocessors) return multiprocessors.error();
  constexpr std::int64_t one = 1;  // where they decide nothing
  for (const LinearKernel* kernel : kernels) {
    const std::int64_t on =
        *multiprocessors != 0 ? *multiprocessors : std::max(kernel->multiprocessors, one);
    const Result<KernelRun> run = run_kernel(tensors, *kernel, on, engine);
    if (!run) {
      return Error{run.error().kind,
                   fmt::format("--kernel {}: {}", kernel->name, run.error().message)};
    }
    ReplayOutput output;
    output.name = kernel->name;
    output.evidence = std::max(kernel->evidence, run->plan.rule->evidence);  // the weaker one
    output.format = run->plan.output;
    output.bytes = encode_values(output.format, run->values);
    output.choices["splits"] = run->plan.splits;
    output.choices["order"] = to_string(run->plan.columns.front().order);
    replay.input["kernels"].push_back(output.name);
    replay.outputs.push_back(std::move(output));
  }
  replay.input["options"] = {{"multiprocessors", *multiprocessors}};
  return std::nullopt;
}

Result<Replay> replay_linear(const ParsedOptions& options, const ReplayFile& file) {
  const Result<LinearTable> table = LinearTable::make(options.values("--kernel"));
  if (!table) return table.error();
  const Result<std::vector<const LinearKernel*>> kernels =
      kernels_from(options, "linear", table->kernels());
  if (!kernels) return kernels.error();
  const Result<std::vector<Order>> orders = order_options(options);
  if (!orders) return orders.error();
  if (const auto error =
          check_kernel_or_order(options, "linear", !kernels->empty(), !orders->empty())) {
    return *error;
  }
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<LinearTensors> tensors = read_tensors(file);
  if (!tensors) return tensors.error();
  for (const LinearKernel* kernel : *kernels) {
    const Result<bool> fits =
        table->check_shape(*kernel, tensors->rows, tensors->outputs, tensors->terms);
    if (!fits) return fits.error();
  }

  Replay replay;
  replay.operator_name = "linear";
  replay.shape = {tensors->rows, tensors->outputs};
  replay.heads = tensors->rows;
  replay.positions = tensors->outputs;
  replay.head_name = "row";
  replay.position_name = "output";
  replay.position_names = "outputs";
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
  if (!kernels->empty()) {
    if (auto error = add_kernels(options, *tensors, *kernels, *engine, replay)) {
      return std::move(*error);
    }
  }
  if (!orders->empty()) {
    if (auto error = add_orders(options, *tensors, *orders, *engine, replay)) {
      return std::move(*error);
    }
  }
  if (replay.outputs.size() == 1) {
    replay.facts.emplace_back(kernels->empty() ? "order" : "kernel", replay.outputs.front().name);
  }
  return replay;
}

constexpr std::array<std::string_view, 7> linear_options{
    "--kernel",  "--order",    "--input",          "--accumulate",
    "--product", "--round-to", "--multiprocessors"};

}  // namespace

const ReplayOperator linear_operator{
    .name = "linear",
    .options = linear_options,
    .run = replay_linear,
};

}  // namespace kvsim
