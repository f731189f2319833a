// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Records that several tests start from.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/record.h"

namespace kvsim::test {

inline PromptRecord prompt_record(std::int64_t prompt = 0) {
  PromptRecord record;
  record.prompt = prompt;
  record.prompt_ids = {1, 42, 7};
  record.run = {.version = "0.1.0",
                .engine = "sim",
                .model = "kv-tiny",
                .model_sha256 = "00ff",
                .storage = "bfloat16",
                .sampling = "greedy (ties go to the lower index)",
                .seed = 1,
                .max_new_tokens = 64,
                .teacher_forced = false,
                .arms = {{"on", "live", "h100"}, {"off", "off", "h100"}}};
  return record;
}

inline StepRecord step_record(std::string arm, std::int64_t step, std::int64_t token,
                              std::int64_t prompt = 0) {
  StepRecord record;
  record.prompt = prompt;
  record.arm = std::move(arm);
  record.step = step;
  record.token = token;
  record.logprob = -0.25;
  record.top = {{token, 20.5, -0.25}, {token + 1, 20.25, -2}};
  record.margin = Margin{0.25, 2};
  record.digests = {.state = {{0, "k", 0, 3, "aa"}, {0, "v", 0, 3, "bb"}, {1, "k", 0, 3, "cc"}},
                    .layer = {"l0", "l1"},
                    .route = {},
                    .token = "t"};
  record.cost = {1000};
  return record;
}

inline ComparisonRecord comparison_record(std::int64_t step, std::int64_t prompt = 0) {
  return {.prompt = prompt,
          .first = "on",
          .second = "off",
          .step = step,
          .same_context = true,
          .kl = 0.125,
          .js = 0.0625,
          .largest_logit_difference = 0.5,
          .differing_logits = 12,
          .top_two_error = -0.25};
}

}  // namespace kvsim::test
