// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/setup.h"
#include "tests/run/engine_runs.h"

/// A study's setup on the simulator, with a small model whose numbers are random.
namespace kvsim::test {

struct SimSetup {
  /// Settings of both arms, such as "dispatch=cpu", and more of the arm with the cache.
  explicit SimSetup(const std::string& settings, const std::string& of_on = "") {
    setup.engine = engine.get();
    setup.on = arm_of("live:" + settings + of_on);
    setup.off = arm_of("off:" + settings);
    setup.stops = false;
    setup.new_tokens = 16;
    setup.version = "test";
    setup.strategies = {experiments::strategy_named("greedy").value()};
    for (TokenId first : {3, 50, 71, 12}) {
      std::vector<TokenId> ids;
      for (TokenId i = 0; i < 40; ++i) ids.push_back((first + 37 * i) % 96);
      setup.prompts.push_back({{first, std::move(ids)}, ""});
    }
  }

  std::unique_ptr<Engine> engine = engine_of("llama-llama3");
  experiments::StudySetup setup;
};

}  // namespace kvsim::test
