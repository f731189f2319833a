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

#include "gpu/crosscheck/check_data.h"
#include "gpu/crosscheck/crosscheck.h"
#include "gpu/crosscheck/simulated.h"
#include "model/config.h"
#include "run/model_shape.h"
#include "sim/linear.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"

/// Every operator of a decoder, of libtorch under the pinned setting, against the dispatch
/// torch-cpu-avx2: equal to the bit.
namespace kvsim::gpu {
namespace {

/// The checks of kv-tiny in a format; more keys than a block of attention has are one more check.
std::vector<Check> checks_of(const softfloat::Format& format) {
  const auto config = load_config(KVSIM_SOURCE_DIR "/data/kv-tiny/config.json");
  EXPECT_TRUE(config) << config.error().message;
  const auto shape = decoder_shape(*config);
  EXPECT_TRUE(shape) << shape.error().message;
  std::vector<Check> checks = model_checks(*shape, format, {});
  for (const char* const operation : {"sdpa", "eager"}) {
    Check longer = checks.back();
    longer.operation = operation;
    longer.label = "long decode";
    longer.queries = 1;
    longer.keys = 600;
    checks.push_back(longer);
  }
  Check odd = checks.front();
  odd.label = "odd sizes";
  odd.outputs = 39;
  odd.terms = 391;
  for (const std::int64_t rows : {1, 2, 7, 64}) {
    odd.rows = rows;
    checks.push_back(odd);
  }
  return checks;
}

std::string place_of(const Check& check, CheckData data) {
  return fmt::format("{} {} {}, {}, {}", softfloat::format_name(check.format), check.operation,
                     check.label, size_text(check), to_string(data));
}

struct Count {
  std::int64_t compared = 0;
  std::int64_t different = 0;
};

/// All checks of an operator, with all data.
Count count_of(Backend& backend, Simulation& simulation, const std::vector<Check>& checks,
               std::string_view operation, std::vector<std::string>* places = nullptr) {
  Count count;
  for (const Check& check : checks) {
    if (check.operation != operation) continue;
    for (const CheckData data : {CheckData::gaussian, CheckData::cancel}) {
      if (!has_data(check, data)) continue;
      const auto inputs = check_data(check, data, 1);
      EXPECT_TRUE(inputs);
      const auto outcome = compare_check(backend, simulation, check, *inputs, {.shrinks = false});
      EXPECT_TRUE(outcome) << outcome.error().message;
      if (!outcome) continue;
      count.compared += outcome->compared;
      count.different += outcome->different;
      if (places != nullptr && outcome->different > 0) {
        places->push_back(fmt::format("{}: {} of {}, {}", place_of(check, data), outcome->different,
                                      outcome->compared, outcome->suspect));
      }
    }
  }
  return count;
}

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
      std::vector<std::string> places;
      const Count count = count_of(*backend, *simulation, checks, operation, &places);
      fmt::print("{} {}: {} of {} differ\n", softfloat::format_name(format), operation,
                 count.different, count.compared);
      for (const std::string& place : places) fmt::print("  {}\n", place);
      EXPECT_GT(count.compared, 0) << operation;
      // On a CPU that was not seen before the table is printed, and that is all.
      if (test::is_known_key()) {
        EXPECT_EQ(count.different, 0) << operation;
      }
    }
  }
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
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
    for (const std::string_view operation : {"linear", "sum", "mean", "rms-norm"}) {
      std::vector<std::string> places;
      const Count count = count_of(*backend, *revealed, checks, operation, &places);
      fmt::print("{} {}, revealed: {} of {} differ\n", softfloat::format_name(format), operation,
                 count.different, count.compared);
      for (const std::string& place : places) fmt::print("  {}\n", place);
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
