// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "sim/attention/kernel.h"
#include "sim/attention/splits.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

/// The lines of one dispatch, by what they decide.
class Lines {
 public:
  explicit Lines(const DispatchChoice& dispatch)
      : row_(dispatch.dispatch()), lines_(dispatch.lines()) {}

  /// "KEY=VALUE" of a line; of the whole set where no line decides.
  [[nodiscard]] std::string setting(std::string_view key) const {
    const auto line = std::find_if(lines_.begin(), lines_.end(), [&](const DispatchLine& entry) {
      return entry.operation == key;
    });
    if (line == lines_.end()) return fmt::format("dispatch={}", row_.name);
    return fmt::format("{}={}", line->operation, line->kernel);
  }
  /// The line of a linear layer of so many rows.
  [[nodiscard]] std::string linear(std::int64_t rows) const {
    std::size_t choice = 0;
    for (const DispatchLine& line : lines_) {
      if (!line.operation.starts_with("linear")) continue;
      if (choice < row_.linear.size() && row_.linear[choice].rows.contains(rows)) {
        return fmt::format("{}={}", line.operation, line.kernel);
      }
      ++choice;
    }
    return fmt::format("dispatch={}", row_.name);
  }

 private:
  const Dispatch& row_;
  std::vector<DispatchLine> lines_;
};

std::string_view activation_line(GateActivation activation) {
  switch (activation) {
    case GateActivation::gelu:
      return "gelu";
    case GateActivation::gelu_tanh:
      return "gelu-tanh";
    case GateActivation::silu:
      break;
  }
  return "silu";
}

std::string rows_text(std::int64_t rows, std::int64_t width) {
  return fmt::format("{} × {}", rows, width);
}

std::string product_text(std::int64_t rows, std::int64_t terms, std::int64_t outputs) {
  return fmt::format("{} × {} → {}", rows, terms, outputs);
}

/// How an attention kernel cuts the keys in the first layer; nothing where it does not.
std::string splits_text(const DecoderShape& shape, const Dispatch& dispatch,
                        const PassLaunch& pass) {
  const bool is_decode = pass.rows == 1;
  const AttentionKernel* const kernel =
      find_attention_kernel(is_decode ? dispatch.attention_decode : dispatch.attention_prefill);
  if (kernel == nullptr || kernel->family != AttentionFamily::online_tiles) return {};
  AttentionLaunch launch;
  launch.batch = std::ssize(pass.kv_lens);
  launch.kv_lens = pass.lengths();
  launch.longest_kv_len = *std::max_element(pass.kv_lens.begin(), pass.kv_lens.end());
  launch.multiprocessors = dispatch.multiprocessors > 1 ? dispatch.multiprocessors : 0;
  launch.splits = is_decode ? dispatch.decode_splits : dispatch.prefill_splits;
  AttentionMask mask;
  mask.window = shape.windowed(0) ? shape.window : 0;
  const AttentionShape sizes{shape.query_heads, shape.kv_heads, pass.rows, pass.first + pass.rows,
                             shape.head_dim};
  const SplitPlan plan = plan_splits(*kernel, sizes, mask, launch);
  return fmt::format(", {} of blocks of {} keys",
                     plan.splits == 1 ? "1 split" : fmt::format("{} splits", plan.splits),
                     plan.block_columns);
}

std::string attention_text(const DecoderShape& shape, const Dispatch& dispatch,
                           const PassLaunch& pass) {
  const std::int64_t keys = pass.first + pass.rows;
  return fmt::format("{} {}, {} {}, batch {}{}", pass.rows, pass.rows == 1 ? "query" : "queries",
                     keys, keys == 1 ? "key" : "keys", pass.kv_lens.size(),
                     splits_text(shape, dispatch, pass));
}

}  // namespace

std::vector<ExplainedOperator> explain_pass(const DecoderShape& shape,
                                            const DispatchChoice& dispatch,
                                            const DecoderFormats& formats, const PassLaunch& pass) {
  const Lines lines(dispatch);
  const std::int64_t rows = pass.all_rows;
  const std::string linear = lines.linear(rows);
  const std::string norm = lines.setting(shape.norm_weight_plus_one ? "norm.plus-one" : "norm");
  const std::int64_t query = shape.query_heads * shape.head_dim;
  const std::int64_t kv = shape.kv_heads * shape.head_dim;
  const std::string hidden = rows_text(rows, shape.hidden);
  std::vector<ExplainedOperator> list;
  list.reserve(24);
  const auto add = [&](std::string operation, std::string text, std::string setting) {
    list.push_back({std::move(operation), std::move(text), std::move(setting)});
  };
  add("norm before attention", hidden, norm);
  add("linear q", product_text(rows, shape.hidden, query), linear);
  add("linear k, v", product_text(rows, shape.hidden, kv), linear);
  if (shape.qk_norm) {
    add("norm of each q, k head", rows_text(rows * shape.query_heads, shape.head_dim), norm);
  }
  add("RoPE", rows_text(rows, query + kv), lines.setting("rope"));
  add("attention", attention_text(shape, dispatch.dispatch(), pass),
      lines.setting(pass.rows == 1 ? "attention.decode" : "attention.prefill"));
  add("linear o", product_text(rows, query, shape.hidden), linear);
  if (shape.sandwich_norms) add("norm after attention", hidden, norm);
  add("residual", hidden, lines.setting("residual"));
  add("norm before the MLP", hidden, norm);
  add("linear gate, up", product_text(rows, shape.hidden, shape.ffn), linear);
  add("activation", rows_text(rows, shape.ffn), lines.setting(activation_line(shape.activation)));
  add("linear down", product_text(rows, shape.ffn, shape.hidden), linear);
  if (shape.sandwich_norms) add("norm after the MLP", hidden, norm);
  add("residual", hidden, lines.setting("residual"));
  // Only rows whose next token is asked for reach the output.
  const auto last = static_cast<std::int64_t>(pass.kv_lens.size()) * (pass.drafts + 1);
  add("last norm", rows_text(last, shape.hidden), norm);
  add("output", product_text(last, shape.hidden, shape.vocabulary), lines.linear(last));

  const auto format = [&](std::string_view what, std::string_view line,
                          const softfloat::Format& value) {
    add(std::string(what), "", fmt::format("{}={}", line, softfloat::format_name(value)));
  };
  if (formats.weights) format("format of weights", "format.weights", *formats.weights);
  format("format of states", "format.activations", formats.activations);
  format("format of K and V", "format.kv", formats.kv);
  format("format of logits", "format.logits", formats.logits);
  return list;
}

}  // namespace kvsim
