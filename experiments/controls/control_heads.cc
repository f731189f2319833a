// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "sim/attention/kernel.h"
#include "sim/attention/run.h"
#include "sim/predict/attention_numbers.h"

/// Query heads that share keys and values, against a copy of them for each.
namespace kvsim::experiments {
namespace {

constexpr std::int64_t query_heads_of_a_group = 4;
constexpr std::string_view decode_line = "attention.decode=";

/// The attention kernel of decode steps, where it is one of the simulator's.
Result<const AttentionKernel*> decode_kernel(const StudyArm& arm, std::int64_t cached) {
  const auto operators = arm.engine->explain({cached, 1, cached}, {.prompt_tokens = cached});
  if (!operators) return operators.error();
  for (const ExplainedOperator& each : *operators) {
    if (!each.setting.starts_with(decode_line)) continue;
    const std::string name = each.setting.substr(decode_line.size());
    const AttentionKernel* kernel = find_attention_kernel(name);
    // Behind the name may stand a forced number of splits.
    if (kernel == nullptr) kernel = find_attention_kernel(name.substr(0, name.rfind('.')));
    if (kernel != nullptr) return kernel;
  }
  return Error{ErrorKind::unavailable, "its attention cannot be called alone, with other heads"};
}

Result<AttentionResult> run_with(const AttentionKernel& kernel, const AttentionNumbers& numbers,
                                 const AttentionLayer& layer, std::int64_t splits) {
  AttentionLaunch launch;
  launch.splits = splits;
  return run_attention(kernel, attention_problem(numbers, layer, launch));
}

}  // namespace

Result<Json> measure_heads(const StudySetup& setup, std::int64_t prompt) {
  const Arm live = with_constructor(setup.on, CacheConstructor::live);
  const Result<StudyArm> arm = prepare(*setup.engine, live);
  if (!arm) return arm.error();
  const auto ids = tokens_of(setup, prompt);
  const Result<const AttentionKernel*> found = decode_kernel(*arm, std::ssize(ids));
  if (!found) return not_applicable(found.error().message);
  const AttentionKernel& kernel = **found;
  const Result<std::unique_ptr<EngineSequence>> sequence = arm->engine->open(1, {});
  if (!sequence) return sequence.error();
  const StateShape state = (*sequence)->state_shape();
  const AttentionShape shape{.query_heads = query_heads_of_a_group * state.kv_heads,
                             .kv_heads = state.kv_heads,
                             .query_len = 1,
                             .kv_len = std::ssize(ids),
                             .head_dim = state.head_dim};
  const AttentionNumbers shared = make_attention_numbers(
      InputKind::gaussian, static_cast<std::uint64_t>(prompt) + 1, shape, state.format);
  const AttentionNumbers repeated = repeat_heads(shared);
  const AttentionLayer layer{.storage = state.format, .mask = {}, .scale = 0};
  // One reduction: not split, where the kernel splits by how many heads there are.
  const std::int64_t splits = kernel.tiles != nullptr ? 1 : 0;
  const Result<AttentionResult> one = run_with(kernel, shared, layer, splits);
  if (!one) return not_applicable(one.error().message);
  const Result<AttentionResult> two = run_with(kernel, repeated, layer, splits);
  if (!two) return not_applicable(two.error().message);
  std::int64_t differing = 0;
  for (std::size_t i = 0; i < one->out.size(); ++i) differing += one->out[i] != two->out[i] ? 1 : 0;
  return Json{{"kernel", kernel.name}, {"outputs", one->out.size()}, {"differing", differing}};
}

ControlVerdict judge_heads(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 14, verdict);
  if (values.empty()) return verdict;
  double differing = 0;
  for (const Json* const each : values) differing += each->at("differing").get<double>();
  verdict.checks.push_back(
      {.what = "outputs with other bits", .measured = differing, .low = 0, .high = 0});
  return verdict;
}

}  // namespace kvsim::experiments
