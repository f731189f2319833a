// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "gpu/crosscheck/decoder_check.h"
#include "gpu/torch_settings.h"
#include "model/checkpoint.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"

/// kv-tiny on libtorch under the pinned setting against the simulator under torch-cpu-avx2.
namespace kvsim::gpu {
namespace {

DispatchChoice dispatch_of(AttentionFunction attention) {
  auto dispatch = DispatchChoice::named("torch-cpu-avx2");
  EXPECT_TRUE(dispatch);
  if (attention == AttentionFunction::eager) {
    for (const char* const line : {"attention.prefill", "attention.decode"}) {
      EXPECT_TRUE(dispatch->set(line, "torch-cpu-avx2-eager"));
    }
  }
  return std::move(*dispatch);
}

DecoderCheckOutcome run(DispatchChoice dispatch, const DecoderCheckOptions& options) {
  const auto checkpoint = load_checkpoint(KVSIM_SOURCE_DIR "/data/kv-tiny");
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  auto outcome = check_decoder(*checkpoint, std::move(dispatch), options);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? *outcome : DecoderCheckOutcome{};
}

TEST(TorchDecoder, HasEveryHiddenStateAndEveryLogitEqual) {
  ASSERT_NE(test::torch_backend(), nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  for (const auto& storage : {softfloat::binary32, softfloat::bfloat16}) {
    for (const AttentionFunction attention : {AttentionFunction::sdpa, AttentionFunction::eager}) {
      const auto outcome =
          run(dispatch_of(attention), {.storage = storage, .attention = attention});
      for (const OperatorTotals& totals : outcome.operators) {
        EXPECT_EQ(totals.different, 0)
            << softfloat::format_name(storage) << " " << to_string(attention) << " "
            << totals.operation << ": " << totals.different << " of " << totals.compared;
      }
      if (outcome.first) {
        fmt::print("{} {}: first: pass {}, layer {}, {}\n", softfloat::format_name(storage),
                   to_string(attention), outcome.first->pass, outcome.first->layer,
                   outcome.first->operation);
      }
      EXPECT_EQ(outcome.passes, 17);
      EXPECT_EQ(outcome.totals("logits").compared, (64 + 16) * 672);
      EXPECT_GE(outcome.operators.size(), 17U);
      fmt::print("{} {}: {} logits, {} of {} RoPE factors are not correctly rounded\n",
                 softfloat::format_name(storage), to_string(attention),
                 outcome.totals("logits").compared, outcome.rope_different, outcome.rope_compared);
    }
  }
}

TEST(TorchDecoder, DiffersUnderABrokenRule) {
  ASSERT_NE(test::torch_backend(), nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  struct Broken {
    std::string_view line;
    std::string_view kernel;
    std::string_view operation;  // where the first difference is to be
  };
  for (const Broken& rule :
       {Broken{"norm", "gpu-rms", "attention-norm"}, Broken{"silu", "control-silu", "gate-product"},
        Broken{"attention.decode", "torch-cpu-avx2-eager", "attention"}}) {
    DispatchChoice dispatch = dispatch_of(AttentionFunction::sdpa);
    const auto set = dispatch.set(rule.line, rule.kernel);
    ASSERT_TRUE(set) << set.error().message;
    const auto outcome =
        run(std::move(dispatch), {.storage = softfloat::binary32, .prefill = 16, .decode = 2});
    ASSERT_TRUE(outcome.first) << rule.kernel;
    EXPECT_EQ(outcome.first->operation, rule.operation);
    const OperatorTotals logits = outcome.totals("logits");
    fmt::print("{}: {} of {} logits differ\n", rule.kernel, logits.different, logits.compared);
    EXPECT_GT(logits.different, 0);
  }
}

}  // namespace
}  // namespace kvsim::gpu
