// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/norm.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/printable.h"
#include "cli/replay/operators.h"
#include "cli/replay/settings.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

struct NormTensors {
  softfloat::Format format;
  std::int64_t rows = -1;
  std::int64_t columns = -1;
  std::vector<float> x, weight, bias;  ///< empty: none
};

Result<NormTensors> read_tensors(const ReplayFile& file) {
  std::int64_t shape[] = {-1, -1};
  Result<TensorValues> x = file.values("x", shape, "[rows, n]");
  if (!x) return x.error();
  NormTensors out{x->format, shape[0], shape[1], std::move(x->values), {}, {}};
  for (const auto& [name, values] :
       {std::pair("weight", &out.weight), std::pair("bias", &out.bias)}) {
    if (!file.has(name)) continue;
    Result<TensorValues> tensor = file.values(name, std::span(shape).last(1),
                                              fmt::format("[{}], the columns of x,", shape[1]));
    if (!tensor) return tensor.error();
    if (tensor->format != out.format) {
      return Error{ErrorKind::usage,
                   fmt::format("{}: x is {} and {} is {}; one format is accepted (or --input "
                               "FORMAT)",
                               printable(file.path()), softfloat::format_name(out.format), name,
                               softfloat::format_name(tensor->format))};
    }
    *values = std::move(tensor->values);
  }
  return out;
}

Result<NormKind> norm_kind(const ParsedOptions& options) {
  const std::optional<std::string> text = options.value("--norm");
  if (!text || *text == "rms") return NormKind::rms;
  if (*text == "layer") return NormKind::layer;
  constexpr std::array<std::string_view, 2> names{"rms", "layer"};
  return unknown_word("--norm", *text, names);
}

/// Adds the results of one row, which may be made from an order.
std::optional<Error> add_output(const NormTensors& tensors, const NormKernel& kernel,
                                std::string_view option, double epsilon,
                                const EngineOptions& engine, Replay& replay) {
  NormProblem problem;
  problem.storage = tensors.format;
  problem.rows = tensors.rows;
  problem.columns = tensors.columns;
  problem.x = tensors.x.data();
  problem.weight = tensors.weight.empty() ? nullptr : tensors.weight.data();
  problem.bias = tensors.bias.empty() ? nullptr : tensors.bias.data();
  problem.epsilon = epsilon;
  std::vector<float> out(tensors.x.size());
  const Result<bool> done = apply_norm(kernel, problem, out.data(), engine);
  if (!done) {
    return Error{done.error().kind,
                 fmt::format("{} {}: {}", option, kernel.name, done.error().message)};
  }
  ReplayOutput output;
  output.name = kernel.name;
  output.format = tensors.format;
  output.bytes = encode_values(tensors.format, out);
  if (option == "--kernel") output.evidence = kernel.evidence;
  replay.outputs.push_back(std::move(output));
  return std::nullopt;
}

Result<Replay> replay_norm(const ParsedOptions& options, const ReplayFile& file) {
  const Result<std::vector<const NormKernel*>> kernels =
      kernels_from(options, "norm", norm_kernels());
  if (!kernels) return kernels.error();
  const Result<std::vector<Order>> orders = order_options(options);
  if (!orders) return orders.error();
  if (const auto error =
          check_kernel_or_order(options, "norm", !kernels->empty(), !orders->empty())) {
    return *error;
  }
  const Result<NormKind> kind = norm_kind(options);
  if (!kind) return kind.error();
  const Result<Product> product = product_option(options);
  if (!product) return product.error();
  const Result<std::optional<float>> epsilon = float_option(options, "--epsilon", 0, 1);
  if (!epsilon) return epsilon.error();
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<NormTensors> tensors = read_tensors(file);
  if (!tensors) return tensors.error();

  const float added = epsilon->value_or(1e-6F);
  Replay replay;
  replay.operator_name = "norm";
  replay.shape = {tensors->rows, tensors->columns};
  replay.heads = tensors->rows;
  replay.positions = tensors->columns;
  replay.head_name = "row";
  replay.position_name = "column";
  replay.position_names = "columns";
  replay.input = Json::object();
  replay.input["input"] = softfloat::format_name(tensors->format);
  replay.input["sizes"] = {{"rows", tensors->rows}, {"columns", tensors->columns}};
  replay.input["bias"] = !tensors->bias.empty();
  replay.input["options"] = {{"weight", !tensors->weight.empty()},
                             {"epsilon", json_number(static_cast<double>(added))}};
  replay.facts.emplace_back(
      "tensors", fmt::format("x [{}, {}], {} weight{}, {}", tensors->rows, tensors->columns,
                             tensors->weight.empty() ? "no" : "with",
                             tensors->bias.empty() ? "" : ", with bias",
                             softfloat::format_name(tensors->format)));
  replay.facts.emplace_back("epsilon", fmt::format("{}", added));
  for (const NormKernel* kernel : *kernels) {
    if (auto error = add_output(*tensors, *kernel, "--kernel", static_cast<double>(added), *engine,
                                replay)) {
      return std::move(*error);
    }
    replay.input["kernels"].push_back(kernel->name);
  }
  for (const Order& order : *orders) {
    const std::string text = to_string(order);
    NormKernel row;
    row.name = text;
    row.kind = *kind;
    row.order = text;
    row.product = *product;
    row.weight =
        *kind == NormKind::layer ? WeightRule::before_rounding : WeightRule::after_rounding;
    if (auto error =
            add_output(*tensors, row, "--order", static_cast<double>(added), *engine, replay)) {
      return std::move(*error);
    }
    replay.input["orders"].push_back(text);
  }
  if (!orders->empty()) {
    const std::string_view name = *kind == NormKind::rms ? "rms" : "layer";
    replay.input["options"]["norm"] = name;
    replay.input["product"] = product_name(*product);
    replay.facts.emplace_back("norm of --order",
                              fmt::format("{}, squares {}", name, product_name(*product)));
  }
  if (replay.outputs.size() == 1) {
    replay.facts.emplace_back(kernels->empty() ? "order" : "kernel", replay.outputs.front().name);
  }
  return replay;
}

constexpr std::array<std::string_view, 6> norm_options{"--kernel",  "--order", "--input",
                                                       "--product", "--norm",  "--epsilon"};

}  // namespace

const ReplayOperator norm_operator{
    .name = "norm",
    .options = norm_options,
    .run = replay_norm,
};

}  // namespace kvsim
