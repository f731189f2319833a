// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/attention/families.h"
#include "sim/attention/splits.h"
#include "sim/decoder/attention_plan.h"
#include "sim/decoder/formats.h"
#include "sim/decoder/named_kernels.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/decoder/weight_kinds.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using decoder::NamedKernels;

/// Lists one pass.
class Explanation {
 public:
  Explanation(const DecoderShape& shape, const DispatchChoice& dispatch,
              const DecoderFormats& formats, const PassSizes& pass)
      : shape_(shape), dispatch_(dispatch.dispatch()), formats_(formats), pass_(pass) {
    setup_ = {.shape = shape_, .formats = formats_, .dispatch = dispatch_};
    rows_ = {.first = pass.cached,
             .count = pass.rows,
             .positions = {},
             .padding = 0,
             .launch = pass.launch};
  }

  Result<std::vector<OperatorChoice>> list() {
    if (dispatch_.arithmetic != DispatchArithmetic::kernels) {
      operators_.push_back({"every operator", "dispatch", "", std::string(dispatch_.name),
                            std::string(dispatch_.description)});
      return std::move(operators_);
    }
    Result<NamedKernels> kernels = decoder::find_kernels(setup_);
    if (!kernels) return kernels.error();
    Result<bool> done = list_attention_block(*kernels);
    if (done) done = list_mlp_block(*kernels);
    if (done) {
      norm("final norm", *kernels, pass_.rows, shape_.hidden);
      done = linear("logits", 1, shape_.hidden, shape_.vocabulary, formats_.logits);
    }
    if (!done) return done.error();
    return std::move(operators_);
  }

 private:
  [[nodiscard]] std::string storage() const {
    return std::string(softfloat::format_name(formats_.activations));
  }

  void norm(std::string_view operation, const NamedKernels& kernels, std::int64_t rows,
            std::int64_t width) {
    operators_.push_back({std::string(operation),
                          shape_.norm_weight_plus_one ? "norm.plus-one" : "norm",
                          fmt::format("{} × {}", rows, width), std::string(kernels.norm.name),
                          std::string(kernels.norm.order)});
  }

  void element_wise(std::string_view operation, std::string_view line, std::int64_t rows,
                    std::int64_t width, std::string_view kernel) {
    operators_.push_back({std::string(operation), std::string(line),
                          fmt::format("{} × {}", rows, width), std::string(kernel), ""});
  }

  Result<bool> linear(std::string_view operation, std::int64_t rows, std::int64_t terms,
                      std::int64_t outputs, const softfloat::Format& output) {
    const std::int64_t launched = pass_.launch.rows != 0 && rows == pass_.rows
                                      ? pass_.launch.rows
                                      : rows * pass_.launch.batch;
    const auto kernel = linear_kernel_for(dispatch_, launched);
    if (!kernel) return kernel.error();
    const softfloat::Format operand =
        joint_format(operands(), formats_.weights.value_or(weight_format(operation)));
    const Result<LinearPlan> plan =
        plan_linear(**kernel, {launched, outputs, terms, operand, dispatch_.multiprocessors});
    if (!plan) return plan.error();
    std::string detail = to_string(plan->columns.front().order);
    if (formats_.accumulator) {
      detail += fmt::format(", sums in {}", softfloat::format_name(*formats_.accumulator));
    }
    if (!(output == operand)) {
      detail += fmt::format(", {} to {}", softfloat::format_name(operand),
                            softfloat::format_name(output));
    }
    operators_.push_back({std::string(operation), linear_line(launched),
                          fmt::format("{} × {} × {}", launched, terms, outputs),
                          std::string((*kernel)->name), std::move(detail)});
    return true;
  }

  /// Of what linear layers multiply, and of queries.
  [[nodiscard]] const softfloat::Format& operands() const {
    return formats_.operands ? *formats_.operands : formats_.activations;
  }
  /// Of the model's matrix for that operation.
  [[nodiscard]] const softfloat::Format& weight_format(std::string_view operation) const {
    if (pass_.weights == nullptr || pass_.weights->layers.empty()) return operands();
    const DecoderWeights& weights = *pass_.weights;
    if (operation == "logits") {
      return (weights.output.present() ? weights.output : weights.embedding).format;
    }
    const WeightView* const view = decoder::find_weight(weights.layers.front(), operation);
    return view == nullptr ? operands() : view->format;
  }

  /// The line that decides for so many rows.
  [[nodiscard]] std::string linear_line(std::int64_t rows) const {
    const std::vector<DispatchLine> lines = dispatch_lines(dispatch_);
    std::size_t choice = 0;
    for (const DispatchLine& line : lines) {
      if (!line.operation.starts_with("linear")) continue;
      if (dispatch_.linear[choice++].rows.contains(rows)) return line.operation;
    }
    return "linear";
  }

  Result<bool> attention(const NamedKernels& kernels, std::int64_t layer) {
    const decoder::AttentionPlan plan =
        decoder::plan_attention(setup_, rows_, decoder::layer_position(shape_, layer));
    const bool decode = rows_.is_decode();
    const AttentionKernel& kernel = decode ? *kernels.decode : *kernels.prefill;
    AttentionLaunch launch;
    launch.batch = pass_.launch.batch;
    launch.kv_lens = pass_.launch.kv_lens;
    for (const std::int64_t length : launch.kv_lens) {
      launch.longest_kv_len = std::max({launch.longest_kv_len, length, plan.keys});
    }
    launch.multiprocessors = dispatch_.multiprocessors > 1 ? dispatch_.multiprocessors : 0;
    launch.splits = decode ? dispatch_.decode_splits : dispatch_.prefill_splits;
    AttentionProblem problem;
    problem.shape = {shape_.query_heads, shape_.kv_heads, plan.queries, plan.keys, shape_.head_dim};
    problem.mask = {.causal = plan.causal,
                    .window = plan.window,
                    .soft_cap = static_cast<float>(plan.soft_cap)};
    problem.storage = joint_format(operands(), formats_.kv);
    problem.launch = launch;
    if (const auto checked = attention::check_problem(kernel, problem); !checked) {
      return checked.error();
    }
    std::string detail;
    if (kernel.family == AttentionFamily::online_tiles) {
      const SplitPlan splits = plan_splits(kernel, problem.shape, problem.mask, launch);
      detail = fmt::format("{} split{} in blocks of {} keys", splits.splits,
                           splits.splits == 1 ? "" : "s", splits.block_columns);
    }
    operators_.push_back(
        {plan.window > 0 ? fmt::format("attention (window {})", plan.window) : "attention",
         decode ? "attention.decode" : "attention.prefill",
         fmt::format("{} {} × {} {}, {} heads of {} on {}", plan.queries,
                     plan.queries == 1 ? "query" : "queries", plan.keys,
                     plan.keys == 1 ? "key" : "keys", shape_.query_heads, shape_.head_dim,
                     shape_.kv_heads),
         std::string(kernel.name), std::move(detail)});
    return true;
  }

  Result<bool> list_attention_block(const NamedKernels& kernels) {
    const std::int64_t query = shape_.query_heads * shape_.head_dim;
    const std::int64_t kv = shape_.kv_heads * shape_.head_dim;
    const std::int64_t rows = pass_.rows;
    norm("attention norm", kernels, rows, shape_.hidden);
    Result<bool> done = linear("query", rows, shape_.hidden, query, formats_.activations);
    for (const std::string_view name : {"key", "value"}) {
      if (done) done = linear(name, rows, shape_.hidden, kv, formats_.activations);
    }
    if (!done) return done;
    if (shape_.qk_norm) {
      norm("query norm", kernels, rows * shape_.query_heads, shape_.head_dim);
      norm("key norm", kernels, rows * shape_.kv_heads, shape_.head_dim);
    }
    element_wise("rope", "rope", rows * (shape_.query_heads + shape_.kv_heads), shape_.head_dim,
                 kernels.rope.name);
    for (const bool windowed : {false, true}) {
      for (std::int64_t layer = 0; done && layer < shape_.layers; ++layer) {
        if (shape_.windowed(layer) != windowed) continue;
        done = attention(kernels, layer);
        break;
      }
    }
    if (done) done = linear("output", rows, query, shape_.hidden, formats_.activations);
    if (!done) return done;
    if (shape_.sandwich_norms) norm("attention post norm", kernels, rows, shape_.hidden);
    element_wise("attention residual", "residual", rows, shape_.hidden, kernels.residual.name);
    return true;
  }

  Result<bool> list_mlp_block(const NamedKernels& kernels) {
    const std::int64_t rows = pass_.rows;
    norm("mlp norm", kernels, rows, shape_.hidden);
    Result<bool> done = true;
    for (const std::string_view name : {"gate", "up"}) {
      if (done) done = linear(name, rows, shape_.hidden, shape_.ffn, formats_.activations);
    }
    constexpr auto line = [](GateActivation activation) -> std::string_view {
      if (activation == GateActivation::silu) return "silu";
      return activation == GateActivation::gelu ? "gelu" : "gelu-tanh";
    };
    if (done) {
      element_wise("activation", line(shape_.activation), rows, shape_.ffn,
                   kernels.activation.name);
      done = linear("down", rows, shape_.ffn, shape_.hidden, formats_.activations);
    }
    if (!done) return done;
    if (shape_.sandwich_norms) norm("mlp post norm", kernels, rows, shape_.hidden);
    element_wise("mlp residual", "residual", rows, shape_.hidden, kernels.residual.name);
    return true;
  }

  const DecoderShape& shape_;
  const Dispatch& dispatch_;
  DecoderFormats formats_;
  PassSizes pass_;
  decoder::OperatorSetup setup_;
  decoder::PassRows rows_;
  std::vector<OperatorChoice> operators_;
};

}  // namespace

Result<std::vector<OperatorChoice>> operator_choices(const DecoderShape& shape,
                                                     const DispatchChoice& dispatch,
                                                     const softfloat::Format& storage,
                                                     const PassSizes& pass) {
  const Result<bool> check = check_shape(shape);
  if (!check) return check.error();
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (pass.rows < 1 || pass.rows > most || pass.cached < 0 || pass.cached > most ||
      pass.launch.batch < 1 || pass.launch.batch > most) {
    return Error{
        ErrorKind::usage,
        fmt::format("a pass of {} rows behind {}, {} sequences; accepted: 1 to {} rows and "
                    "sequences",
                    pass.rows, pass.cached, pass.launch.batch, most)};
  }
  const Result<DecoderFormats> formats = resolve_formats(dispatch.dispatch(), storage);
  if (!formats) return formats.error();
  return Explanation(shape, dispatch, *formats, pass).list();
}

std::vector<OperatorPair> operator_pairs(const std::vector<OperatorChoice>& first,
                                         const std::vector<OperatorChoice>& second) {
  std::vector<OperatorPair> pairs;
  pairs.reserve(std::max(first.size(), second.size()));
  // Where one names kernels and the other does not, the lists have no operator in common.
  const bool same_lists = first.size() == second.size();
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    const auto at = [&](const std::vector<OperatorChoice>& list) {
      if (same_lists || i < list.size()) return list[i];
      return list.size() == 1 ? list.front() : OperatorChoice{};
    };
    OperatorPair pair{at(first), at(second), false};
    pair.differs =
        pair.first.kernel != pair.second.kernel || pair.first.detail != pair.second.detail;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace kvsim
