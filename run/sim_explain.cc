// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_explain.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "sim/decoder/explain.h"
#include "softfloat/formats.h"

namespace kvsim {

Result<std::vector<ExplainedOperator>> explain_pass(const DecoderShape& shape,
                                                    const DispatchChoice& dispatch,
                                                    const DecoderFormats& formats,
                                                    const softfloat::Format& storage,
                                                    const PassLaunch& pass) {
  PassSizes sizes;
  sizes.cached = pass.first;
  sizes.rows = pass.rows;
  sizes.launch.batch = std::ssize(pass.kv_lens);
  sizes.launch.kv_lens = pass.lengths();
  sizes.launch.rows = pass.all_rows;
  const auto choices = operator_choices(shape, dispatch, storage, sizes);
  if (!choices) return choices.error();
  std::vector<ExplainedOperator> list;
  list.reserve(choices->size() + 4);
  for (const OperatorChoice& choice : *choices) {
    list.push_back({choice.operation, choice.shape,
                    choice.line.empty() ? fmt::format("dispatch={}", dispatch.name())
                                        : fmt::format("{}={}", choice.line, choice.kernel),
                    choice.detail});
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
