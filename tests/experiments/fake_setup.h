// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "experiments/setup.h"
#include "tests/run/engine_runs.h"
#include "tests/run/fake_engine.h"

/// A study's setup on the engine whose results follow from a few integers.
namespace kvsim::test {

struct FakeSetup {
  explicit FakeSetup(std::int64_t prompts) {
    engine.fake.stop_tokens = {3};
    setup.engine = &engine;
    setup.on = arm_of("live:noise=20");
    setup.off = arm_of("off:noise=20");
    setup.new_tokens = 6;
    setup.seeds = {1, 7};
    setup.version = "test";
    setup.strategies = {experiments::strategy_named("greedy").value(),
                        experiments::strategy_named("top-k").value()};
    for (std::int64_t i = 0; i < prompts; ++i) {
      const auto token = static_cast<TokenId>(i % 16);
      setup.prompts.push_back(
          {{10 + i, {token, 2, static_cast<TokenId>(i / 16), static_cast<TokenId>(15 - token)}},
           "12"});
    }
  }
  FakeSetup(const FakeSetup&) = delete;
  FakeSetup& operator=(const FakeSetup&) = delete;
  ~FakeSetup() = default;

  FakeEngine engine;
  experiments::StudySetup setup;
};

}  // namespace kvsim::test
