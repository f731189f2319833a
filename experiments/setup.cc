// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "model/quote.h"

namespace kvsim::experiments {

std::span<const Strategy> strategy_rows() {
  static const std::vector<Strategy> rows{
      {"greedy", {}},
      {"top-k", {.temperature = 0.7, .top_k = 50}},
      {"top-p", {.temperature = 0.7, .top_p = 0.95}},
  };
  return rows;
}

Result<Strategy> strategy_named(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(strategy_rows().size());
  for (const Strategy& row : strategy_rows()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  return Error{ErrorKind::usage,
               fmt::format("a strategy {}; accepted: {}", quote(name), fmt::join(names, ", "))};
}

Result<ArmSequence> StudyArm::open(std::span<const TokenId> prompt, std::int64_t new_tokens) const {
  Launch of_text = launch;
  of_text.prompt_tokens = std::ssize(prompt);
  return ArmSequence::open(*engine, arm, prompt, new_tokens, of_text);
}

Result<StudyArm> prepare(const Engine& engine, const Arm& arm) {
  Result<std::unique_ptr<EngineArm>> made = engine.arm(arm.settings);
  if (!made) return made.error();
  return StudyArm{arm, std::move(*made)};
}

}  // namespace kvsim::experiments
