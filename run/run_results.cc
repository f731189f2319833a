// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_results.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <variant>

namespace kvsim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The place of an arm in the head line; their number where it is not there.
std::size_t arm_index(const PromptRecord& head, const std::string& label) {
  const std::vector<RecordArm>& arms = head.run.arms;
  const auto found = std::find_if(arms.begin(), arms.end(),
                                  [&](const RecordArm& arm) { return arm.label == label; });
  return static_cast<std::size_t>(found - arms.begin());
}

/// The step of an arm, or null where it ended before.
const StepRecord* step_at(const std::vector<StepRecord>& steps, std::int64_t step) {
  return step < std::ssize(steps) ? &steps[static_cast<std::size_t>(step)] : nullptr;
}

}  // namespace

void StepMean::add(std::optional<double> value) {
  ++steps;
  if (value) sum += *value;
  if (!value) is_infinite = true;
}

void StepMean::add(const StepMean& other) {
  sum += other.sum;
  steps += other.steps;
  is_infinite = is_infinite || other.is_infinite;
}

double StepMean::mean() const {
  if (is_infinite) return infinity;
  return steps == 0 ? 0 : sum / static_cast<double>(steps);
}

void RunResults::add(const RecordLine& line) {
  if (const auto* head = std::get_if<PromptRecord>(&line)) {
    const std::size_t arms = head->run.arms.size();
    prompts_.push_back({*head, std::vector<std::vector<StepRecord>>(arms),
                        std::vector<std::vector<ComparisonRecord>>(arms)});
    return;
  }
  if (prompts_.empty()) return;
  PromptResult& prompt = prompts_.back();
  if (const auto* step = std::get_if<StepRecord>(&line)) {
    const std::size_t arm = arm_index(prompt.head, step->arm);
    if (arm == prompt.steps.size()) return;
    StepRecord kept = *step;
    kept.top.clear();
    kept.digests = {};
    prompt.steps[arm].push_back(std::move(kept));
  } else if (const auto* pair = std::get_if<ComparisonRecord>(&line)) {
    const std::size_t arm = arm_index(prompt.head, pair->second);
    if (arm < prompt.pairs.size()) prompt.pairs[arm].push_back(*pair);
  }
}

PairSummary summarize_pair(const PromptResult& prompt, std::size_t other) {
  PairSummary summary;
  for (const ComparisonRecord& pair : prompt.pairs[other]) {
    if (!pair.same_context) {
      summary.kl_after.add(pair.kl);
      continue;
    }
    ++summary.steps;
    summary.kl.add(pair.kl);
    summary.largest_kl = std::max(summary.largest_kl, pair.kl.value_or(infinity));
    summary.largest_js = std::max(summary.largest_js, pair.js);
    summary.largest_logit_difference =
        std::max(summary.largest_logit_difference, pair.largest_logit_difference);
    if (pair.differing_logits == 0) ++summary.equal_steps;
    if (pair.differing_logits > 0 && !summary.first_logits) summary.first_logits = pair.step;
    const StepRecord* first = step_at(prompt.steps.front(), pair.step);
    const StepRecord* second = step_at(prompt.steps[other], pair.step);
    if (first == nullptr || second == nullptr || first->token == second->token) continue;
    ++summary.token_changes;
    if (summary.flip) continue;
    summary.flip = ChosenOtherwise{pair.step,     first->token,   second->token,
                                   first->margin, second->margin, pair.top_two_error};
  }
  return summary;
}

PairTotal total_of(const std::vector<PairSummary>& prompts) {
  PairTotal total;
  for (const PairSummary& prompt : prompts) {
    ++total.prompts;
    if (prompt.first_logits) ++total.prompts_with_difference;
    if (prompt.flip) ++total.prompts_with_flip;
    PairSummary& sum = total.sum;
    sum.steps += prompt.steps;
    sum.equal_steps += prompt.equal_steps;
    sum.token_changes += prompt.token_changes;
    sum.largest_logit_difference =
        std::max(sum.largest_logit_difference, prompt.largest_logit_difference);
    sum.largest_kl = std::max(sum.largest_kl, prompt.largest_kl);
    sum.largest_js = std::max(sum.largest_js, prompt.largest_js);
    sum.kl.add(prompt.kl);
    sum.kl_after.add(prompt.kl_after);
  }
  return total;
}

}  // namespace kvsim
