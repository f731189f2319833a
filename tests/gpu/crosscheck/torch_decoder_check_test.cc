// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/crosscheck/decoder_check.h"
#include "gpu/torch_settings.h"
#include "model/checkpoint.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"
#ifdef KVSIM_GOLDEN_MODEL
#include "cli/model_places.h"
#include "model/model_store.h"
#endif

/// A whole model on libtorch under the pinned setting against the simulator under torch-cpu-avx2.
namespace kvsim::gpu {
namespace {

#ifdef KVSIM_GOLDEN_MODEL
constexpr std::int64_t vocabulary = 49152;  // of SmolLM2

std::string folder() {
  const auto found = find_model(KVSIM_GOLDEN_MODEL, model_places());
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : std::string();
}
#else
constexpr std::int64_t vocabulary = 672;

std::string folder() { return KVSIM_SOURCE_DIR "/data/kv-tiny"; }
#endif

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
  const auto checkpoint = load_checkpoint(folder());
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
      EXPECT_EQ(outcome.totals("logits").compared, (64 + 16) * vocabulary);
      EXPECT_GE(outcome.operators.size(), 17U);
      fmt::print("{} {}: {} logits, {} of {} RoPE factors are not correctly rounded\n",
                 softfloat::format_name(storage), to_string(attention),
                 outcome.totals("logits").compared, outcome.rope_different, outcome.rope_compared);
    }
  }
}

#ifndef KVSIM_GOLDEN_MODEL
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
#endif

}  // namespace
}  // namespace kvsim::gpu
