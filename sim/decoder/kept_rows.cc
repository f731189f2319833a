// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/kept_rows.h"

#include <algorithm>
#include <vector>

#include "sim/attention/kept_rows.h"
#include "sim/decoder/attention_plan.h"
#include "sim/decoder/named_kernels.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/linear.h"

namespace kvsim::decoder {
namespace {

/// Compares the kernels that a pass of so many rows gets with those of a longer one.
class Comparison {
 public:
  Comparison(const OperatorSetup& setup, std::int64_t before, std::int64_t after)
      : setup_(setup), before_(before), after_(after) {}

  /// Whether the sums of a linear layer with these weights are the same.
  [[nodiscard]] bool keeps_linear(const WeightView& weights) const {
    const auto short_kernel = linear_kernel_for(setup_.dispatch, before_);
    const auto long_kernel = linear_kernel_for(setup_.dispatch, after_);
    if (!short_kernel || !long_kernel) return false;
    if ((*short_kernel)->bias_after_rounding != (*long_kernel)->bias_after_rounding) return false;
    const softfloat::Format operand = setup_.formats.operands.value_or(setup_.formats.activations);
    LinearShape shape{
        .rows = before_,
        .outputs = weights.rows,
        .terms = weights.columns,
        .storage = joint_format(operand, setup_.formats.weights.value_or(weights.format)),
        .multiprocessors = setup_.dispatch.multiprocessors};
    const Result<LinearPlan> before = plan_linear(**short_kernel, shape);
    shape.rows = after_;
    const Result<LinearPlan> after = plan_linear(**long_kernel, shape);
    if (!before || !after) return false;
    const auto same_columns = [](const LinearColumns& a, const LinearColumns& b) {
      return a.first == b.first && a.count == b.count && a.order == b.order;
    };
    return !before->rule->exchanged && !after->rule->exchanged &&
           before->rule->starts_from_bias == after->rule->starts_from_bias &&
           before->rule->product == after->rule->product &&
           before->rule->accumulator == after->rule->accumulator &&
           before->output == after->output &&
           std::ranges::equal(before->columns, after->columns, same_columns);
  }

  [[nodiscard]] bool keeps_attention(const AttentionKernel& kernel, std::int64_t layer) const {
    const LayerPosition position = layer_position(setup_.shape, layer);
    return kvsim::keeps_rows(kernel, problem(position, before_), problem(position, after_));
  }

 private:
  [[nodiscard]] AttentionProblem problem(const LayerPosition& position, std::int64_t rows) const {
    const AttentionPlan plan = plan_attention(setup_, {.first = 0, .count = rows}, position);
    const DecoderShape& shape = setup_.shape;
    AttentionProblem problem;
    problem.shape = {shape.query_heads, shape.kv_heads, rows, rows, shape.head_dim};
    problem.mask = {.causal = plan.causal,
                    .window = plan.window,
                    .soft_cap = static_cast<float>(plan.soft_cap),
                    .first_key = plan.masked_keys};
    problem.storage = joint_format(setup_.formats.operands.value_or(setup_.formats.activations),
                                   setup_.formats.kv);
    problem.launch.multiprocessors =
        setup_.dispatch.multiprocessors > 1 ? setup_.dispatch.multiprocessors : 0;
    problem.launch.splits = setup_.dispatch.prefill_splits;
    return problem;
  }

  const OperatorSetup& setup_;
  std::int64_t before_;
  std::int64_t after_;
};

/// Whether two matrices are planned alike.
bool are_alike(const WeightView& a, const WeightView& b) {
  return a.rows == b.rows && a.columns == b.columns && a.format == b.format;
}

}  // namespace

bool keeps_rows(const OperatorSetup& setup, const DecoderWeights& weights, std::int64_t before,
                std::int64_t after) {
  if (before < 1 || after <= before || setup.plant != Plant::none || setup.attention.exp ||
      setup.dispatch.arithmetic != DispatchArithmetic::kernels) {
    return false;
  }
  const Result<NamedKernels> kernels = find_kernels(setup);
  if (!kernels || kernels->prefill == nullptr) return false;
  // The last elements of a whole tensor may be computed in another way than full groups are.
  const std::int64_t group = kernels->activation.group;
  if (group != 0 && setup.shape.ffn % group != 0) return false;

  const Comparison comparison(setup, before, after);
  std::vector<WeightView> compared;
  for (const DecoderLayerWeights& layer : weights.layers) {
    for (const WeightView& matrix :
         {layer.query, layer.key, layer.value, layer.output, layer.gate, layer.up, layer.down}) {
      const auto known = [&](const WeightView& other) { return are_alike(matrix, other); };
      if (std::ranges::any_of(compared, known)) continue;
      if (!comparison.keeps_linear(matrix)) return false;
      compared.push_back(matrix);
    }
  }
  std::vector<std::int64_t> windows;  // layers differ in nothing else
  for (std::int64_t layer = 0; layer < setup.shape.layers; ++layer) {
    const std::int64_t window = layer_position(setup.shape, layer).window;
    if (std::ranges::find(windows, window) != windows.end()) continue;
    if (!comparison.keeps_attention(*kernels->prefill, layer)) return false;
    windows.push_back(window);
  }
  return true;
}

}  // namespace kvsim::decoder
