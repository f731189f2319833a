// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/rescale_rounding.h"

#include <gtest/gtest.h>

#include "sim/dispatch_choice.h"

namespace kvsim {
namespace {

struct Case {
  std::string_view dispatch;
  std::vector<DispatchSetting> settings;
  bool leaves;
};

TEST(RescaleRounding, IsWhatTiledAttentionLeavesOfExactSums) {
  const DispatchSetting prefill{"attention.prefill", "h100-fa3"};
  const DispatchSetting decode{"attention.decode", "h100-fa3"};
  const Case cases[] = {
      {"exact", {}, false},  // eager
      {"exact", {prefill}, false},
      {"exact", {prefill, decode}, true},
      {"exact", {prefill, {"attention.decode", "a100-fa2.split8"}}, false},
      {"exact", {prefill, {"attention.decode", "h100-fa3.split2"}}, true},
      {"exact", {prefill, {"attention.decode", "torch-cpu"}}, false},
      {"exact", {prefill, decode, {"linear.m1", "h100-gemv"}}, false},
      {"exact", {prefill, decode, {"linear", "control-linear.exact"}}, true},
      {"exact", {prefill, decode, {"norm", "gpu-rms"}}, false},
      {"exact", {prefill, decode, {"silu", "torch-cpu-silu"}}, false},
      {"h100-fa3", {}, false},
      {"exact-sums", {}, false},
      {"binary64", {}, false},
  };
  for (const Case& each : cases) {
    DispatchChoice choice = DispatchChoice::named(each.dispatch).value();
    const auto set = choice.set_all(each.settings);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(leaves_rescale_rounding(choice.dispatch()), each.leaves)
        << each.dispatch << " " << each.settings.size();
  }
}

}  // namespace
}  // namespace kvsim
