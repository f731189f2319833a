// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_launch.h"

#include <algorithm>

namespace kvsim {

std::span<const std::int64_t> PassLaunch::lengths() const {
  const auto differs = [&](std::int64_t length) { return length != kv_lens.front(); };
  if (std::any_of(kv_lens.begin(), kv_lens.end(), differs)) return kv_lens;
  return {};
}

bool is_from_start(const PassLaunch& launch) {
  return launch.first == 0 && launch.padding == 0 && launch.drafts == 0 &&
         launch.kv_lens.size() == 1 && launch.all_rows == launch.rows;
}

PassLaunch launch_of_pass(const Launch& launch, const PlanStep& step) {
  const std::int64_t prompt = launch.prompt_tokens;
  std::int64_t longest = prompt;
  for (const std::int64_t length : launch.neighbours) longest = std::max(longest, length);
  const bool is_left = launch.padding == Padding::left;
  const std::int64_t end = step.first_row + step.rows;
  const std::int64_t generated = std::max<std::int64_t>(0, end - prompt);
  const bool makes_one = step.rows == 1 && step.first_row >= prompt;

  PassLaunch pass;
  pass.padding = is_left ? longest - prompt : 0;
  pass.drafts = makes_one ? launch.verify_width - 1 : 0;
  pass.first = step.first_row == 0 ? 0 : step.first_row + pass.padding;
  pass.rows = end + pass.padding - pass.first + pass.drafts;
  pass.kv_lens.reserve(launch.neighbours.size() + 1);
  pass.kv_lens.push_back(pass.first + pass.rows);
  pass.all_rows = pass.rows;
  // Padded right, the rows of a pass over the prompt are those of the longest one.
  if (launch.padding == Padding::right && !makes_one && end >= prompt) {
    pass.all_rows = std::max(pass.rows, longest + generated - pass.first);
  }
  for (const std::int64_t tokens : launch.neighbours) {
    const std::int64_t length = launch.padding == Padding::none ? tokens : longest;
    std::int64_t rows = 1;
    if (makes_one) {
      rows = launch.verify_width;
    } else if (end >= prompt) {
      rows = std::max<std::int64_t>(1, length + generated - pass.first);
    } else {
      rows = std::clamp<std::int64_t>(length - pass.first, 1, pass.rows);
    }
    pass.all_rows += rows;
    const std::int64_t keys = is_left ? length : tokens;
    pass.kv_lens.push_back(end >= prompt ? keys + generated + pass.drafts
                                         : std::min(keys, pass.first + rows));
  }
  return pass;
}

}  // namespace kvsim
