// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/crosscheck/crosscheck.h"
#include "gpu/crosscheck/revealed.h"
#include "gpu/crosscheck/simulated.h"
#include "sim/linear.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_checks.h"
#include "tests/gpu/crosscheck/torch_keys.h"

/// Every operator of a decoder, of libtorch under the pinned setting, against the dispatch
/// torch-cpu-avx2: equal to the bit.
namespace kvsim::gpu {
namespace {

using test::checks_of;
using test::Count;
using test::count_of;

TEST(TorchOperators, AreEqualToTheBit) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  const auto dispatch = DispatchChoice::named("torch-cpu-avx2");
  ASSERT_TRUE(dispatch);
  const auto simulation = named_simulation(*dispatch);
  for (const auto& format : {softfloat::binary32, softfloat::bfloat16}) {
    const std::vector<Check> checks = checks_of(format);
    for (const std::string_view operation : check_operations()) {
      if (operation == "gelu-tanh") continue;  // kv-tiny has none
      const Count count = count_of(*backend, *simulation, checks, operation);
      test::print(format, operation, count);
      EXPECT_GT(count.compared, 0) << operation;
      // On a CPU that was not seen before the table is printed, and that is all.
      if (test::is_known_key()) {
        EXPECT_EQ(count.different, 0) << operation;
      }
    }
  }
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
}

/// One query and several, of the model and over more keys than a block has.
TEST(TorchOperators, FlashAttentionOfFloat16IsEqualToTheBit) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  const auto dispatch = DispatchChoice::named("torch-cpu-avx2");
  ASSERT_TRUE(dispatch);
  const auto simulation = named_simulation(*dispatch);
  std::vector<Check> checks = checks_of(softfloat::binary16);
  std::erase_if(checks, [](const Check& check) { return check.operation != "sdpa"; });
  ASSERT_FALSE(checks.empty());
  Check check = checks.back();
  check.label = "odd sizes";
  for (const std::int64_t keys : {1, 2, 7, 11, 13, 50, 200, 513, 1500}) {
    check.queries = 1;
    check.keys = keys;
    checks.push_back(check);
  }
  for (const std::int64_t queries : {2, 3, 5, 13, 40, 200}) {  // a prefill: as many of each
    check.queries = check.keys = queries;
    checks.push_back(check);
  }
  const Count count = count_of(*backend, *simulation, checks, "sdpa");
  print(softfloat::binary16, "sdpa", count);
  EXPECT_GT(count.compared, 60'000);
  EXPECT_EQ(count.different, 0);
}

/// What holds on any CPU: orders revealed on the machine give every bit.
TEST(TorchOperators, AreExplainedByOrdersRevealedHere) {
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  const auto revealed = revealed_simulation(*backend, {.least_outputs = 2000});
  for (const auto& format : {softfloat::binary32, softfloat::bfloat16}) {
    std::vector<Check> checks = checks_of(format);
    // On a known CPU a part is enough to show that this way works.
    if (test::is_known_key()) {
      std::erase_if(checks, [](const Check& check) {
        return check.operation == "linear" && (check.label != "down" || check.rows == 64);
      });
    }
    for (const std::string_view operation : {"linear", "sum", "mean", "softmax", "rms-norm"}) {
      // Another CPU may take another exp, which need not be one of the models.
      if (operation == "softmax" && !test::is_known_key()) continue;
      const Count count = count_of(*backend, *revealed, checks, operation);
      test::print(format, std::string(operation) + ", revealed", count);
      EXPECT_GT(count.compared, 0) << operation;
      EXPECT_EQ(count.different, 0) << operation;
    }
  }
}

TEST(TorchOperators, AreNotEqualUnderBrokenRules) {
  struct Broken {
    std::string_view operation;
    std::string_view line;
    std::string_view kernel;
    std::string_view order;  // of sum and mean
  };
  constexpr Broken rules[] = {
      {"sum", {}, {}, "torch-cascade(16)"},
      {"mean", {}, {}, "pairwise"},
      {"softmax", "softmax", "torch-cpu-softmax", {}},
      {"softmax", "softmax", "control-softmax", {}},
      {"rms-norm", "norm", "gpu-rms", {}},
      {"silu", "silu", "control-silu", {}},
      {"sdpa", "attention", "torch-cpu", {}},
      {"sdpa", "attention", "torch-cpu-avx2-eager", {}},
      {"eager", "attention", "h100-eager", {}},
  };
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  const std::vector<Check> checks = checks_of(softfloat::binary32);
  for (const Broken& rule : rules) {
    auto dispatch = DispatchChoice::named("torch-cpu-avx2");
    ASSERT_TRUE(dispatch);
    std::map<std::string, std::string> orders;
    if (rule.line == "attention") {
      for (const char* const line : {"attention.prefill", "attention.decode"}) {
        const auto set = dispatch->set(line, rule.kernel);
        ASSERT_TRUE(set) << set.error().message;
      }
    } else if (!rule.line.empty()) {
      const auto set = dispatch->set(rule.line, rule.kernel);
      ASSERT_TRUE(set) << set.error().message;
    } else {
      orders[std::string(rule.operation)] = rule.order;
    }
    const auto simulation = named_simulation(std::move(*dispatch), std::move(orders));
    const Count count = count_of(*backend, *simulation, checks, rule.operation);
    fmt::print("{} by {}{}: {} of {} differ\n", rule.operation, rule.kernel, rule.order,
               count.different, count.compared);
    EXPECT_GT(count.different, 0) << rule.operation << " by " << rule.kernel << rule.order;
  }
}

/// Each rule of the linear kernel in binary32, broken in one thing.
TEST(TorchOperators, NeedEveryPartOfTheLinearRules) {
  struct Broken {
    std::string_view what;
    bool (*change)(LinearRule& rule);  // whether the rule has that part
  };
  constexpr Broken changes[] = {
      {"blocks of 128",
       [](LinearRule& rule) {
         return rule.order == "blocks(192)" && (rule.order = "blocks(128)", true);
       }},
      {"no half blocks",
       [](LinearRule& rule) {
         return rule.order == "blocks(K/2)" && (rule.order = "blocks(192)", true);
       }},
      {"blocks rounded",
       [](LinearRule& rule) {
         return rule.order.starts_with("blocks") && (rule.product = Product::rounded, true);
       }},
      {"lanes fused",
       [](LinearRule& rule) {
         return rule.order.starts_with("lanes") && (rule.product = Product::fused, true);
       }},
      {"no edge", [](LinearRule& rule) { return std::exchange(rule.edge_outputs, 0) > 0; }},
      {"no second edge order",
       [](LinearRule& rule) { return !std::exchange(rule.second_edge_order, {}).empty(); }},
      {"no leading term",
       [](LinearRule& rule) { return std::exchange(rule.leading_modulus, 0) > 0; }},
  };
  const auto backend = test::torch_backend();
  ASSERT_NE(backend, nullptr);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  const auto named = DispatchChoice::named("torch-cpu-avx2");
  const LinearKernel* const kernel = find_linear_kernel("torch-cpu-avx2-linear");
  ASSERT_TRUE(named);
  ASSERT_NE(kernel, nullptr);
  for (const Broken& broken : changes) {
    std::vector<LinearRule> rules(kernel->rules.begin(), kernel->rules.end());
    int changed = 0;
    for (LinearRule& rule : rules) {
      if (rule.storage == softfloat::binary32 && broken.change(rule)) ++changed;
    }
    EXPECT_GT(changed, 0) << broken.what;
    LinearKernel other = *kernel;
    other.rules = rules;
    const LinearChoice choice{.rows = {}, .kernel = other.name, .own = &other};
    Dispatch dispatch = named->dispatch();
    dispatch.linear = std::span(&choice, 1);
    const auto simulation = named_simulation(DispatchChoice(dispatch));
    const Count count = count_of(*backend, *simulation, checks_of(softfloat::binary32), "linear");
    fmt::print("linear, {}: {} of {} differ\n", broken.what, count.different, count.compared);
    EXPECT_GT(count.different, 0) << broken.what;
  }
}

}  // namespace
}  // namespace kvsim::gpu
