// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "run/arm.h"

namespace kvsim {
namespace {

constexpr std::int64_t largest_list = std::int64_t{1} << 31;
constexpr std::int64_t largest_plan = std::int64_t{1} << 24;

Error usage(const std::string& message) { return {ErrorKind::usage, message}; }

/// A plan that is put together pass by pass.
class Plan {
 public:
  /// One pass over rows first … end − 1, all before it cached.
  void add(std::int64_t first, std::int64_t end) { steps_.push_back({first, end - first, first}); }
  /// Rows first … end − 1 in passes of `rows`, the last one shorter.
  void add_chunks(std::int64_t first, std::int64_t end, std::int64_t rows) {
    for (std::int64_t at = first; at < end; at += rows) add(at, std::min(at + rows, end));
  }
  [[nodiscard]] std::vector<PlanStep> take() { return std::move(steps_); }

 private:
  std::vector<PlanStep> steps_;
};

/// Rows of an earlier prompt that a prompt of n tokens finds in the cache.
std::int64_t prefix_rows(const Arm& arm, std::int64_t prompt) {
  const std::int64_t usable = std::min(arm.rows, prompt - 1);
  return usable - usable % arm.block;
}

/// The largest number of passes that a plan over so many tokens has, within one of it.
std::int64_t number_of_passes(const Arm& arm, std::int64_t prompt, std::int64_t generated) {
  switch (arm.constructor) {
    case CacheConstructor::one_shot:
      return 1;
    case CacheConstructor::all_token_wise:
      return prompt + generated;
    case CacheConstructor::chunked:
      return prompt / arm.rows + 1 + generated;
    case CacheConstructor::aligned_chunk:
      return (prompt + generated) / arm.rows + 1;
    case CacheConstructor::live:
    case CacheConstructor::token_wise:
    case CacheConstructor::prefix_hit:
    case CacheConstructor::off:
      break;
  }
  return generated + 2;
}

Result<bool> check_list(const Arm& arm, std::int64_t prompt, std::int64_t generated) {
  if (prompt < 1 || prompt > largest_list) {
    return usage(fmt::format("{} prompt tokens; accepted: from 1 to {}", prompt, largest_list));
  }
  if (generated < 0 || generated > largest_list - prompt) {
    return usage(
        fmt::format("{} generated tokens after {} of the prompt; accepted: from 0, {} "
                    "together",
                    generated, prompt, largest_list));
  }
  if (arm.constructor == CacheConstructor::prefix_hit && arm.rows > prompt) {
    return usage(
        fmt::format("arm {}: a prefix of {} tokens of a prompt of {}; accepted: at most "
                    "the prompt",
                    to_text(arm), arm.rows, prompt));
  }
  const std::int64_t passes = number_of_passes(arm, prompt, generated);
  if (passes > largest_plan) {
    return usage(fmt::format("arm {}: about {} passes; accepted: at most {}", to_text(arm), passes,
                             largest_plan));
  }
  return true;
}

}  // namespace

Result<std::vector<PlanStep>> cache_plan(const Arm& arm, std::int64_t prompt_tokens,
                                         std::int64_t generated_tokens) {
  if (const auto checked = check_list(arm, prompt_tokens, generated_tokens); !checked) {
    return checked.error();
  }
  const std::int64_t end = prompt_tokens + generated_tokens;
  Plan plan;
  switch (arm.constructor) {
    case CacheConstructor::all_token_wise:
      plan.add_chunks(0, end, 1);
      return plan.take();
    case CacheConstructor::one_shot:
      plan.add(0, end);
      return plan.take();
    case CacheConstructor::aligned_chunk:
      plan.add_chunks(0, end, arm.rows);
      return plan.take();
    case CacheConstructor::off:
      for (std::int64_t length = prompt_tokens; length <= end; ++length) plan.add(0, length);
      return plan.take();
    case CacheConstructor::chunked:
      plan.add_chunks(0, prompt_tokens, arm.rows);
      break;
    case CacheConstructor::prefix_hit:
      if (const std::int64_t hit = prefix_rows(arm, prompt_tokens); hit > 0) {
        plan.add(0, arm.rows);
        plan.add(hit, prompt_tokens);
        break;
      }
      plan.add(0, prompt_tokens);
      break;
    case CacheConstructor::live:
    case CacheConstructor::token_wise:
      plan.add(0, prompt_tokens);
      break;
  }
  plan.add_chunks(prompt_tokens, end, 1);
  return plan.take();
}

Result<std::vector<PlanStep>> next_passes(const Arm& arm, std::int64_t prompt_tokens,
                                          std::int64_t generated_tokens) {
  if (const auto checked = check_list(arm, prompt_tokens, generated_tokens); !checked) {
    return checked.error();
  }
  const std::int64_t row = prompt_tokens + generated_tokens;
  std::int64_t first = row;
  if (arm.constructor == CacheConstructor::token_wise) {
    return cache_plan(arm, prompt_tokens, generated_tokens + 1);
  }
  if (arm.constructor == CacheConstructor::off) first = 0;
  if (arm.constructor == CacheConstructor::aligned_chunk) first = row - row % arm.rows;
  return std::vector<PlanStep>{{first, row + 1 - first, first}};
}

}  // namespace kvsim
