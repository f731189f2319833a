// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/run/engine_runs.h"

/// What must be equal bit for bit between the arms of a run.
namespace kvsim {
namespace {

using namespace test;

struct Batch {
  std::string_view name;
  Launch launch;
};

const Batch batches[] = {
    {"alone", {}},
    {"neighbours", {1, {20, 3}, Padding::none, 1}},
    {"padded left", {1, {20, 3}, Padding::left, 1}},
    {"padded right", {1, {20, 3}, Padding::right, 1}},
    {"drafts", {1, {}, Padding::none, 3}},
    {"drafts, padded left", {1, {20, 3}, Padding::left, 3}},
};

// Kernels that do not depend on the rows of a pass, and eager attention where only storage rounds.
TEST(RunInvariants, EveryConstructorInEveryBatchIsLiveAlone) {
  std::vector<std::string_view> arms{"live:batch=alone,verify-width=1"};
  arms.insert(arms.end(), every_constructor.begin(), every_constructor.end());
  const std::string_view dispatches[] = {"batch-invariant", "batch-invariant-fp32", "exact"};
  for (const std::string_view model : {"llama-llama3", "gemma3"}) {
    const auto engine = engine_of(model, 1, CommonRows::recomputed);
    for (std::size_t i = 0; i < std::size(batches); ++i) {
      // Gemma-3 has windows and soft caps, for which one batch of each dispatch is enough.
      for (std::size_t j = 0; j < std::size(dispatches); ++j) {
        if (model == "gemma3" && j != i % 3) continue;
        if (dispatches[j] == "exact" && i % 2 == 1) continue;
        const Comparison run =
            compare(*engine, arms, "dispatch=" + std::string(dispatches[j]), batches[i].launch);
        for (std::size_t k = 0; k < run.pairs.size(); ++k) {
          EXPECT_EQ(run.pairs[k].equal_steps, 4) << model << ", " << dispatches[j] << ", "
                                                 << batches[i].name << ": " << every_constructor[k];
        }
      }
    }
  }
}

TEST(RunInvariants, RebuildsWhatWasLiveWithTheSameKernelsAndShapes) {
  const auto engine = engine_of("llama-llama3");
  for (const char* dispatch : {"dispatch=torch-cpu", "dispatch=h100-fa3", "dispatch=fp32"}) {
    const Comparison run = compare(*engine, {"live", "token-wise", "live"}, dispatch);
    EXPECT_EQ(run.pairs[0].equal_steps, 4) << dispatch;
    EXPECT_EQ(run.pairs[1].equal_steps, 4) << dispatch;
  }
  // That arms can differ at all:
  EXPECT_EQ(compare(*engine, {"live", "off"}, "dispatch=fp32").pairs[0].equal_steps, 1);
}

TEST(RunInvariants, NeighboursChangeBitsThroughTheKernelsThatTheyChoose) {
  const auto engine = engine_of("llama-llama3");
  const Comparison run = compare(*engine, {"live", "live:batch=200"}, "dispatch=fp32");
  EXPECT_LT(run.pairs[0].equal_steps, 4);
}

}  // namespace
}  // namespace kvsim
