// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "sim/decoder/explain.h"
#include "softfloat/formats.h"

namespace kvsim {

Result<std::vector<ExplainedOperator>> explain_pass(
    const DecoderShape& shape, const DispatchChoice& dispatch, const DecoderFormats& formats,
    const softfloat::Format& storage, const DecoderWeights& weights, const PassLaunch& pass) {
  PassSizes sizes;
  sizes.weights = &weights;
  sizes.cached = pass.first;
  sizes.rows = pass.rows;
  sizes.launch.batch = std::ssize(pass.kv_lens);
  sizes.launch.kv_lens = pass.lengths();
  sizes.launch.rows = pass.all_rows;
  const auto choices = operator_choices(shape, dispatch, storage, sizes);
  if (!choices) return choices.error();
  std::vector<ExplainedOperator> list;
  list.reserve(choices->size() + 4);
  const std::vector<DispatchLine> lines = dispatch.lines();
  const auto setting = [&](const OperatorChoice& choice) {
    if (choice.line.empty()) return fmt::format("dispatch={}", dispatch.name());
    // The line may say more than the kernel's name: a forced number of splits.
    const auto line = std::ranges::find(lines, choice.line, &DispatchLine::operation);
    return fmt::format("{}={}", choice.line, line == lines.end() ? choice.kernel : line->kernel);
  };
  for (const OperatorChoice& choice : *choices) {
    list.push_back({choice.operation, choice.shape, setting(choice), choice.detail});
  }
  const auto add = [&](std::string_view what, std::string_view line,
                       const softfloat::Format& value) {
    list.push_back(
        {std::string(what), "", fmt::format("{}={}", line, softfloat::format_name(value)), ""});
  };
  if (dispatch.dispatch().arithmetic == DispatchArithmetic::binary64) return list;
  if (formats.weights) add("weights", "format.weights", *formats.weights);
  add("hidden states", "format.activations", formats.activations);
  add("K and V", "format.kv", formats.kv);
  add("logits", "format.logits", formats.logits);
  return list;
}

}  // namespace kvsim
