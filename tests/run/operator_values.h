// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "run/engine.h"

/// What must hold of every engine that hands back what its operators give.
namespace kvsim::test {

/// The last output of that name; empty where there is none.
inline std::vector<double> output_of(const EnginePass& pass, std::int64_t layer,
                                     std::string_view operation) {
  std::vector<double> found;
  for (const StateValues& each : pass.values) {
    if (each.layer == layer && each.operation == operation) found = each.values;
  }
  return found;
}

/// Rotated keys and values are what the cache has of the last row; each layer's hidden state is the
/// one that is handed back without the operators; asking changes no logit.
inline void check_operator_values(const EngineArm& arm, std::int64_t verify_width) {
  const std::vector<TokenId> tokens{17, 48, 48, 58, 66, 49};
  const std::int64_t n = std::ssize(tokens);
  const Launch launch{.prompt_tokens = n - 1, .verify_width = verify_width};
  const auto sequence = arm.open(32, launch);
  ASSERT_TRUE(sequence);
  const auto check = [&](const PlanStep& step) {
    const auto fed = std::span(tokens).first(static_cast<std::size_t>(step.first_row + step.rows));
    const auto layers = (*sequence)->pass(fed, step, {.layer_values = true});
    ASSERT_TRUE(layers);
    const auto pass = (*sequence)->pass(fed, step, {.operator_values = true});
    ASSERT_TRUE(pass);
    EXPECT_EQ(pass->logits, layers->logits);
    const StateShape shape = (*sequence)->state_shape();
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const std::int64_t row = step.first_row + step.rows - 1;
      EXPECT_EQ(output_of(*pass, layer, "key-rope"),
                (*sequence)->state({layer, KvPart::key, row, 1}).value());
      EXPECT_EQ(output_of(*pass, layer, "value"),
                (*sequence)->state({layer, KvPart::value, row, 1}).value());
      EXPECT_EQ(output_of(*pass, layer, "hidden"), output_of(*layers, layer, "hidden"));
      const std::size_t width = output_of(*pass, layer, "hidden").size();
      for (const char* name : {"output", "down"}) {
        EXPECT_EQ(output_of(*pass, layer, name).size(), width) << name;
      }
      EXPECT_EQ(output_of(*pass, layer, "attention").size(),
                output_of(*pass, layer, "query-rope").size());
    }
    EXPECT_TRUE(std::ranges::all_of(
        pass->values, [&](const StateValues& each) { return each.operation != "logits"; }));
  };
  check({0, n - 1, 0});
  check({n - 1, 1, n - 1});
}

}  // namespace kvsim::test
