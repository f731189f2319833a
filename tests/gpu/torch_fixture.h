// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/setting.h"
#include "gpu/torch_engine.h"
#include "model/checkpoint.h"

/// Models on libtorch, under the setting of the program.
namespace kvsim::test {

inline std::unique_ptr<Engine> torch_engine(const std::string& folder, std::string_view model) {
  const auto applied = gpu::apply_setting(KVSIM_TEST_SETTING);
  EXPECT_TRUE(applied) << applied.error().message;
  Result<Checkpoint> checkpoint = load_checkpoint(folder);
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  Result<std::unique_ptr<Engine>> engine = gpu::make_torch_engine(
      gpu::torch_cpu_engine_name, std::move(*checkpoint), std::string(model));
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(*engine);
}

/// The settings that say attention and storage.
inline std::vector<ArmSetting> torch_settings(std::string_view attention,
                                              std::string_view storage) {
  return {{"attention", std::string(attention)}, {"storage", std::string(storage)}};
}

/// Passes of so many rows each, one after the other.
inline std::vector<EnginePass> run_way(EngineSequence& sequence, std::span<const std::int32_t> ids,
                                       const std::vector<std::int64_t>& rows,
                                       const PassRequest& request) {
  std::vector<EnginePass> passes;
  std::int64_t first = 0;
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  for (const std::int64_t count : rows) {
    auto pass = sequence.pass(std::span(tokens).first(static_cast<std::size_t>(first + count)),
                              {first, count, first}, request);
    EXPECT_TRUE(pass) << pass.error().message;
    if (!pass) return passes;
    passes.push_back(std::move(*pass));
    first += count;
  }
  return passes;
}

}  // namespace kvsim::test
