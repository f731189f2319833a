// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/crosscheck/decoder_check.h"
#include "gpu/crosscheck/simulated.h"
#include "gpu/torch_settings.h"
#include "model/checkpoint.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_checks.h"
#include "tests/gpu/crosscheck/torch_keys.h"

/// libtorch as it is installed against the dispatch torch-cpu.
namespace kvsim::gpu {
namespace {

/// What docs/torch-cpu.md leaves open, as addresses count: in float32, SDPA, and two or three rows
/// that are no multiple of 16 bytes.
bool is_left_open(const Check& check) {
  const bool short_rows =
      check.operation == "linear" && check.terms % 4 != 0 && check.rows > 1 && check.rows < 4;
  return check.format == softfloat::binary32 && (check.operation == "sdpa" || short_rows);
}

TEST(TorchInstalled, OperatorsAreEqualToTheBit) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  const auto dispatch = DispatchChoice::named("torch-cpu");
  ASSERT_TRUE(dispatch);
  const auto simulation = named_simulation(*dispatch);
  for (const auto& format : {softfloat::binary32, softfloat::bfloat16}) {
    std::vector<Check> checks = test::checks_of(format);
    std::erase_if(checks, is_left_open);
    for (const std::string_view operation : check_operations()) {
      if (operation == "gelu-tanh") continue;  // kv-tiny has none
      if (operation == "sdpa" && format == softfloat::binary32) continue;
      const test::Count count = test::count_of(*backend, *simulation, checks, operation);
      test::print(format, operation, count);
      EXPECT_GT(count.compared, 0) << operation;
      if (test::is_known_key()) {
        EXPECT_EQ(count.different, 0) << operation;
      }
    }
  }
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
}

// Attention written out, over sizes on both sides of every limit of its products: 400 multiply-adds
// of a head, 4,096 of all heads, 4 queries, 12 and 1,024 keys, blocks of 192.
TEST(TorchInstalled, EagerAttentionIsEqualAtManySizes) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  const auto dispatch = DispatchChoice::named("torch-cpu");
  ASSERT_TRUE(dispatch);
  const auto simulation = named_simulation(*dispatch);
  constexpr std::array<std::array<std::int64_t, 3>, 5> heads{
      {{8, 2, 32}, {9, 3, 64}, {4, 1, 256}, {3, 1, 20}, {2, 2, 8}}};
  for (const auto& format : {softfloat::binary32, softfloat::bfloat16}) {
    test::Count count;
    for (const auto& [queries_of, keys_of, head_dim] : heads) {
      for (const std::int64_t keys : {1, 3, 11, 12, 13, 24, 27, 63, 129, 191, 250, 385, 1030}) {
        Check check{.label = "attention", .operation = "eager", .format = format};
        check.heads = queries_of;
        check.kv_heads = keys_of;
        check.head_dim = head_dim;
        check.keys = keys;
        test::add_check(*backend, *simulation, check, count);
        check.queries = keys;
        if (keys <= 250) test::add_check(*backend, *simulation, check, count);
      }
    }
    test::print(format, "eager", count);
    EXPECT_GT(count.compared, 100'000);
    EXPECT_EQ(count.different, 0);
  }
}

// Not by the rules of the pinned setting: those limits are there.
TEST(TorchInstalled, EagerAttentionIsNotThatOfThePinnedSetting) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  auto dispatch = DispatchChoice::named("torch-cpu");
  ASSERT_TRUE(dispatch);
  for (const char* const line : {"attention.prefill", "attention.decode"}) {
    ASSERT_TRUE(dispatch->set(line, "torch-cpu-avx2-eager"));
  }
  const auto simulation = named_simulation(std::move(*dispatch));
  for (const auto& format : {softfloat::binary32, softfloat::bfloat16}) {
    const test::Count count =
        test::count_of(*backend, *simulation, test::checks_of(format), "eager");
    test::print(format, "eager as pinned", count);
    EXPECT_GT(count.different, 0);
  }
}

TEST(TorchInstalled, EveryLogitOfEagerAttentionIsEqual) {
  ASSERT_NE(test::torch_backend(), nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  struct Way {
    softfloat::Format storage;
    AttentionFunction attention;
  };
  for (const Way& way : {Way{softfloat::binary32, AttentionFunction::eager},
                         Way{softfloat::bfloat16, AttentionFunction::eager},
                         Way{softfloat::bfloat16, AttentionFunction::sdpa}}) {
    auto dispatch = DispatchChoice::named("torch-cpu");
    ASSERT_TRUE(dispatch);
    if (way.attention == AttentionFunction::eager) {
      for (const char* const line : {"attention.prefill", "attention.decode"}) {
        ASSERT_TRUE(dispatch->set(line, "torch-cpu-eager"));
      }
    }
    const auto checkpoint = load_checkpoint(KVSIM_SOURCE_DIR "/data/kv-tiny");
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto outcome = check_decoder(*checkpoint, std::move(*dispatch),
                                       {.storage = way.storage, .attention = way.attention});
    ASSERT_TRUE(outcome) << outcome.error().message;
    for (const OperatorTotals& totals : outcome->operators) {
      EXPECT_EQ(totals.different, 0)
          << softfloat::format_name(way.storage) << " " << to_string(way.attention) << " "
          << totals.operation << ": " << totals.different << " of " << totals.compared;
    }
    EXPECT_EQ(outcome->totals("logits").compared, (64 + 16) * 672);
  }
}

}  // namespace
}  // namespace kvsim::gpu
