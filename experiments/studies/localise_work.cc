// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/protocol/forks.h"
#include "experiments/studies/localise_parts.h"
#include "experiments/studies/localise_patches.h"

namespace kvsim::experiments {

LocaliseWork::LocaliseWork(ArmWork on, ArmWork off, ArmWork rebuilt, std::int64_t new_tokens,
                           const StateShape& shape)
    : on_(std::move(on)),
      off_(std::move(off)),
      rebuilt_(std::move(rebuilt)),
      new_tokens_(new_tokens),
      shape_(shape) {}

Result<LocaliseWork> LocaliseWork::of(const StudySetup& setup) {
  Result<ArmWork> on = ArmWork::of(*setup.engine, setup.on);
  if (!on) return on.error();
  Result<ArmWork> off = ArmWork::of(*setup.engine, setup.off);
  if (!off) return off.error();
  Result<ArmWork> rebuilt = ArmWork::of(*setup.engine, one_shot_arm(setup.off));
  if (!rebuilt) return rebuilt.error();
  const auto opened = on->arm().open(setup.prompts.front().prompt.ids, setup.new_tokens);
  if (!opened) return opened.error();
  return LocaliseWork(std::move(*on), std::move(*off), std::move(*rebuilt), setup.new_tokens,
                      opened->sequence().state_shape());
}

Result<std::int64_t> LocaliseWork::fork(std::int64_t prompt_tokens) {
  const std::int64_t step = std::max<std::int64_t>(2, new_tokens_ / 2);
  const std::int64_t tries = std::min(ForkOptions().tries, new_tokens_ - 2);
  const Result<std::int64_t> text = on_.text(prompt_tokens, new_tokens_);
  if (!text) return text.error();
  const Result<std::int64_t> pair = fork_work(rebuilt_, prompt_tokens, step);
  if (!pair) return pair.error();
  std::int64_t rows = localise_follows - 1;  // of one direction: the donor's own text
  for (const NamedPatch& patch : fork_patches(shape_, prompt_tokens, prompt_tokens + step - 1)) {
    rows += patch.continues ? localise_follows : 1;
  }
  return *text + tries * *pair + 2 * rows;
}

Result<std::int64_t> LocaliseWork::first_step(std::int64_t prompt_tokens) {
  const std::int64_t steps = std::min(localise_steps, new_tokens_ - 1);
  const Result<std::int64_t> prompt = on_.text(prompt_tokens, 1);
  if (!prompt) return prompt.error();
  const Result<std::int64_t> on = on_.text(prompt_tokens, 1 + steps);
  if (!on) return on.error();
  const Result<std::int64_t> off = off_.text(prompt_tokens, 1 + steps);
  if (!off) return off.error();
  const auto patches = std::ssize(first_step_patches(shape_.layers));
  return *on + *off + patches * (*on - *prompt);
}

}  // namespace kvsim::experiments
