// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "gpu/operators.h"
#include "gpu/sim_backend.h"
#include "sim/attention/kernel.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::bfloat16;
using softfloat::binary32;

constexpr std::string_view torch_sums =
    "pytorch/pytorch aten/src/ATen/native/cpu/SumKernel.cpp (2.11); replayed, docs/torch-cpu.md";

constexpr auto sum_rules = std::to_array<VectorSumRule>({
    {"cpu", binary32, "sum", "torch-cascade(8)", torch_sums},
    {"cpu", binary32, "mean", "torch-cascade(8)", torch_sums},
    {"cpu", bfloat16, "sum", "torch-cascade(8,2)", torch_sums},
    {"cpu", bfloat16, "mean", "torch-cascade(8)", torch_sums},
    {"cpu-avx2", binary32, "sum", "torch-cascade(8)", torch_sums},
    {"cpu-avx2", binary32, "mean", "torch-cascade(8)", torch_sums},
    {"cpu-avx2", bfloat16, "sum", "torch-cascade(8,2)", torch_sums},
    {"cpu-avx2", bfloat16, "mean", "torch-cascade(8)", torch_sums},
});

Error missing(std::string_view dispatch, const Check& check) {
  return {ErrorKind::unavailable,
          fmt::format("{} has no kernel for {} in {}", dispatch, check.operation,
                      softfloat::format_name(check.format))};
}

class NamedSimulation final : public Simulation {
 public:
  NamedSimulation(DispatchChoice dispatch, std::map<std::string, std::string> orders)
      : choice_(std::move(dispatch)), orders_(std::move(orders)) {}

  [[nodiscard]] Result<std::string> kernel(const Check& check) override {
    const Dispatch& row = choice_.dispatch();
    std::string name;
    if (check.operation == "linear") {
      const auto linear = linear_kernel_for(row, check.rows);
      if (!linear) return linear.error();
      name = (*linear)->name;
    } else if (check.operation == "sum" || check.operation == "mean") {
      name = order_of(check);
    } else if (check.operation == "softmax") {
      name = row.softmax;
    } else if (check.operation == "rms-norm") {
      name = check.plus_one ? row.norm_plus_one : row.norm;
    } else if (check.operation == "silu") {
      name = row.silu;
    } else if (check.operation == "gelu-tanh") {
      name = row.gelu_tanh;
    } else if (check.operation == "rsqrt") {
      name = "1 ÷ √x";
    } else if (check.operation == "residual") {
      name = row.residual;
    } else if (check.operation == "product") {
      name = "x · y";
    } else if (check.operation == "sdpa") {
      name = check.queries == 1 ? row.attention_decode : row.attention_prefill;
    } else if (check.operation == "eager") {
      name = eager();
    }
    if (name.empty()) return missing(row.name, check);
    return name;
  }

  [[nodiscard]] Result<Tensor> run(const Check& check, const std::vector<Tensor>& inputs) override;

 private:
  [[nodiscard]] std::string order_of(const Check& check) const {
    const auto given = orders_.find(check.operation);
    if (given != orders_.end()) return given->second;
    const auto* const rule = std::ranges::find_if(sum_rules, [&](const VectorSumRule& each) {
      return each.dispatch == choice_.name() && each.storage == check.format &&
             each.operation == check.operation;
    });
    return rule == sum_rules.end() ? std::string() : std::string(rule->order);
  }
  [[nodiscard]] std::string eager() const {
    std::string name(choice_.dispatch().attention_prefill);
    const AttentionKernel* const kernel = find_attention_kernel(name);
    if (kernel == nullptr || kernel->family == AttentionFamily::eager) return name;
    name += "-eager";
    return find_attention_kernel(name) == nullptr ? std::string() : name;
  }
  [[nodiscard]] Result<Tensor> run_kernel(std::string_view name, const OperatorCall& call);

  DispatchChoice choice_;
  std::map<std::string, std::string> orders_;
  std::map<std::string, std::unique_ptr<Backend>, std::less<>> kernels_;
};

Result<Tensor> NamedSimulation::run_kernel(std::string_view name, const OperatorCall& call) {
  std::unique_ptr<Backend>& kernel = kernels_[std::string(name)];
  if (!kernel) {
    auto made = make_sim_backend(name);
    if (!made) return made.error();
    kernel = std::move(*made);
  }
  return kernel->run(call);
}

/// Operators on each element.
Result<Tensor> elements(const Dispatch& dispatch, const Check& check,
                        const std::vector<Tensor>& inputs) {
  Tensor out = zero_tensor(check.format, inputs[0].shape);
  Result<bool> done = true;
  if (check.operation == "rsqrt") {
    std::ranges::transform(inputs[0].values, out.values.begin(),
                           [](float x) { return 1 / std::sqrt(x); });
    done = round_values(check.format, out.values, out.values);
  } else if (check.operation == "product") {
    done = multiply_elements(check.format, inputs[0].values, inputs[1].values, out.values);
  } else {
    const ResidualKernel* const kernel = find_residual_kernel(dispatch.residual);
    if (kernel == nullptr) return missing(dispatch.name, check);
    done = add_residual(*kernel, check.format, inputs[0].values, inputs[1].values, out.values);
  }
  if (!done) return done.error();
  return out;
}

/// A linear kernel that stands in no table.
Result<Tensor> run_linear(const LinearKernel& kernel, const Dispatch& dispatch, const Check& check,
                          const std::vector<Tensor>& inputs) {
  Tensor out = zero_tensor(check.format, {check.rows, check.outputs});
  const LinearProblem problem{.rows = check.rows,
                              .outputs = check.outputs,
                              .terms = check.terms,
                              .storage = check.format,
                              .multiprocessors = dispatch.multiprocessors,
                              .x = inputs[0].values.data(),
                              .x_stride = check.terms,
                              .w = inputs[1].values.data(),
                              .w_stride = check.terms,
                              .w_by_outputs = true};
  const auto done = apply_linear(kernel, problem, out.values.data(), check.outputs);
  if (!done) return done.error();
  return out;
}

Result<Tensor> NamedSimulation::run(const Check& check, const std::vector<Tensor>& inputs) {
  const Result<std::string> name = kernel(check);
  if (!name) return name.error();
  const Dispatch& dispatch = choice_.dispatch();
  if (check.operation == "linear") {
    const auto linear = linear_kernel_for(dispatch, check.rows);
    if (!linear) return linear.error();
    return run_linear(**linear, dispatch, check, inputs);
  }
  if (check.operation == "rsqrt" || check.operation == "product" || check.operation == "residual") {
    return elements(dispatch, check, inputs);
  }
  OperatorCall call{check.operation, inputs, {}};
  if (check.operation == "sum" || check.operation == "mean") {
    call.attributes = {{"order", *name}, {"product", "rounded"}, {"accumulator", "binary32"}};
    return run_kernel("", call);
  }
  if (check.operation == "softmax") call.inputs[0].format = binary32;
  if (check.operation == "rms-norm") {
    call.attributes["eps"] = fmt::to_string(check.epsilon);
  }
  if (check.is_attention()) {
    call.operation = "sdpa";
    call.attributes["causal"] = check.queries > 1 ? "1" : "0";
  }
  return run_kernel(*name, call);
}

}  // namespace

std::span<const VectorSumRule> vector_sum_rules() { return sum_rules; }

std::unique_ptr<Simulation> named_simulation(DispatchChoice dispatch,
                                             std::map<std::string, std::string> orders) {
  return std::make_unique<NamedSimulation>(std::move(dispatch), std::move(orders));
}

}  // namespace kvsim::gpu
