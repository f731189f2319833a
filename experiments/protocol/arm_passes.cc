// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/arm_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace kvsim::experiments {

Result<std::vector<std::int64_t>> passes_behind(const Arm& arm, std::int64_t prompt_tokens,
                                                std::int64_t generated_tokens) {
  const Result<std::vector<PlanStep>> plan = cache_plan(arm, prompt_tokens, generated_tokens);
  if (!plan) return plan.error();
  std::vector<std::int64_t> rows;
  std::int64_t end = prompt_tokens + generated_tokens;
  // From the last pass back: what a pass begins behind was made by the latest one that ends there.
  for (const PlanStep& step : std::views::reverse(*plan)) {
    if (end == 0) break;
    if (step.first_row + step.rows != end) continue;
    rows.push_back(step.rows);
    end = step.first_row;
  }
  if (end != 0) {
    return Error{ErrorKind::usage,
                 fmt::format("a prediction for {}: it takes a part of the rows of a longer pass; "
                             "accepted: arms whose passes follow one another",
                             to_text(arm))};
  }
  std::ranges::reverse(rows);
  return rows;
}

}  // namespace kvsim::experiments
