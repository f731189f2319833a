// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/softmax.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/replay/exp_settings.h"
#include "cli/replay/operators.h"
#include "cli/replay/settings.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// Adds the results of one row, which may be made from an order.
std::optional<Error> add_output(const TensorValues& x, const SoftmaxKernel& kernel,
                                std::string_view option, const ExpSettings& exp,
                                const EngineOptions& engine, Replay& replay) {
  SoftmaxProblem problem;
  problem.storage = x.format;
  problem.rows = x.shape[0];
  problem.columns = x.shape[1];
  problem.x = x.values.data();
  const bool is_bounded = ExpFunction(kernel.exp).bounded();
  ReplayOutput output;
  output.name = kernel.name;
  const Result<bool> done =
      exp.fill(output, x.format, [&](const ExpOptions& exp_options) -> Result<ExpSettings::Values> {
        // What is given of a bounded exp says nothing of the others.
        if (is_bounded) {
          const Result<bool> fits = check_exp_options(kernel.exp, exp_options);
          if (!fits) return fits.error();
          problem.exp = ExpFunction(kernel.exp, exp_options);
        }
        ExpSettings::Values out;
        out.values.resize(x.values.size());
        out.exp =
            softmax_exp(kernel, problem).bounded() ? ExpKnowledge::bounded : ExpKnowledge::exact;
        const Result<bool> applied = apply_softmax(kernel, problem, out.values.data(), engine);
        if (!applied) return applied.error();
        return out;
      });
  if (!done) {
    return Error{done.error().kind,
                 fmt::format("{} {}: {}", option, kernel.name, done.error().message)};
  }
  if (option == "--kernel") output.evidence = kernel.evidence;
  replay.outputs.push_back(std::move(output));
  return std::nullopt;
}

Result<Replay> replay_softmax(const ParsedOptions& options, const ReplayFile& file) {
  const Result<std::vector<const SoftmaxKernel*>> kernels =
      kernels_from(options, "softmax", softmax_kernels());
  if (!kernels) return kernels.error();
  const Result<std::vector<Order>> orders = order_options(options);
  if (!orders) return orders.error();
  if (const auto error =
          check_kernel_or_order(options, "softmax", !kernels->empty(), !orders->empty())) {
    return *error;
  }
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<ExpSettings> exp = ExpSettings::from(options);
  if (!exp) return exp.error();
  std::int64_t shape[] = {-1, -1};
  const Result<TensorValues> x = file.values("x", shape, "[rows, n]");
  if (!x) return x.error();

  Replay replay;
  replay.operator_name = "softmax";
  replay.shape = {shape[0], shape[1]};
  replay.heads = shape[0];
  replay.positions = shape[1];
  replay.head_name = "row";
  replay.position_name = "column";
  replay.position_names = "columns";
  replay.input = Json::object();
  replay.input["input"] = softfloat::format_name(x->format);
  replay.input["sizes"] = {{"rows", shape[0]}, {"columns", shape[1]}};
  replay.input["options"] = Json::object();
  exp->describe(replay.input["options"]);
  replay.facts.emplace_back("tensors", fmt::format("x [{}, {}], {}", shape[0], shape[1],
                                                   softfloat::format_name(x->format)));
  for (const SoftmaxKernel* kernel : *kernels) {
    if (auto error = add_output(*x, *kernel, "--kernel", *exp, *engine, replay)) {
      return std::move(*error);
    }
    replay.input["kernels"].push_back(kernel->name);
  }
  for (const Order& order : *orders) {
    const std::string text = to_string(order);
    SoftmaxKernel row;
    row.name = text;
    row.order = text;
    if (auto error = add_output(*x, row, "--order", *exp, *engine, replay)) {
      return std::move(*error);
    }
    replay.input["orders"].push_back(text);
  }
  if (replay.outputs.size() == 1) {
    replay.facts.emplace_back(kernels->empty() ? "order" : "kernel", replay.outputs.front().name);
  }
  return replay;
}

constexpr std::array<std::string_view, 5> softmax_options{"--kernel", "--order", "--input",
                                                          "--exp-table", "--exp-ulp"};

}  // namespace

const ReplayOperator softmax_operator{
    .name = "softmax",
    .options = softmax_options,
    .run = replay_softmax,
};

}  // namespace kvsim
