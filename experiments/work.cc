// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/work.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace kvsim::experiments {

PassCount::PassCount(const StudyArm& arm, std::int64_t prompt_tokens)
    : keeper_(dynamic_cast<const KeepsRows*>(arm.engine.get())), launch_(arm.launch) {
  launch_.prompt_tokens = prompt_tokens;
}

void PassCount::add(const PlanStep& step) {
  const bool is_from_start = step.first_row == 0;
  const bool keeps = keeper_ != nullptr && is_from_start && from_start_ > 0 &&
                     from_start_ < step.rows &&
                     keeper_->keeps_rows(from_start_, step.rows, launch_);
  rows_ += step.rows - (keeps ? from_start_ : 0);
  from_start_ = is_from_start ? step.rows : 0;
}

Result<ArmWork> ArmWork::of(const Engine& engine, const Arm& arm) {
  Result<StudyArm> prepared = prepare(engine, arm);
  if (!prepared) return prepared.error();
  return ArmWork(std::move(*prepared));
}

Result<std::int64_t> ArmWork::text(std::int64_t prompt_tokens, std::int64_t steps) {
  const auto known = texts_.find({prompt_tokens, steps});
  if (known != texts_.end()) return known->second;
  PassCount count(arm_, prompt_tokens);
  for (std::int64_t step = 0; step < steps; ++step) {
    const Result<std::vector<PlanStep>> passes =
        step == 0 ? cache_plan(arm_.arm, prompt_tokens, 0)
                  : next_passes(arm_.arm, prompt_tokens, step - 1);
    if (!passes) return passes.error();
    for (const PlanStep& pass : *passes) count.add(pass);
  }
  texts_.emplace(std::tuple(prompt_tokens, steps), count.rows());
  return count.rows();
}

Result<std::int64_t> ArmWork::cache(std::int64_t prompt_tokens, std::int64_t generated) {
  const Result<std::vector<PlanStep>> passes = cache_plan(arm_.arm, prompt_tokens, generated);
  if (!passes) return passes.error();
  PassCount count(arm_, prompt_tokens);
  for (const PlanStep& pass : *passes) count.add(pass);
  return count.rows();
}

Result<TextGroup> TextGroup::of(const Engine& engine, std::span<const Arm> arms,
                                std::int64_t steps) {
  TextGroup group{.steps = steps};
  for (const Arm& arm : arms) {
    Result<ArmWork> work = ArmWork::of(engine, arm);
    if (!work) return work.error();
    group.arms.push_back(std::move(*work));
  }
  return group;
}

Result<std::int64_t> TextGroup::work(std::int64_t prompt_tokens) {
  std::int64_t sum = 0;
  for (ArmWork& arm : arms) {
    const Result<std::int64_t> text = arm.text(prompt_tokens, steps);
    if (!text) return text;
    sum += *text;
  }
  return sum;
}

std::int64_t prompt_tokens(const StudySetup& setup, std::int64_t prompt) {
  return std::ssize(setup.prompts[static_cast<std::size_t>(prompt)].prompt.ids);
}

}  // namespace kvsim::experiments
