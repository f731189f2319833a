// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/sim_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "gpu/operators.h"
#include "sim/attention/kernel.h"
#include "sim/linear.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "softfloat/formats.h"
#include "tests/gpu/closed_forms.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor tensor(std::vector<std::int64_t> shape, std::vector<float> values,
              softfloat::Format format = softfloat::binary32) {
  return {.format = format, .shape = std::move(shape), .values = std::move(values)};
}

std::unique_ptr<Backend> make(std::string_view name) {
  auto made = make_backend(name);
  EXPECT_TRUE(made) << name << ": " << made.error().message;
  return made ? std::move(*made) : nullptr;
}

std::vector<float> values_of(std::string_view backend, const OperatorCall& call) {
  const auto result = make(backend)->run(call);
  EXPECT_TRUE(result) << result.error().message;
  return result ? result->values : std::vector<float>{};
}

// 2^24 swallows a 1 that is added to it alone: every order of these terms has a sum of its own.
const std::vector<float> swallowing = {0x1p24F, 1, 1, 1};

TEST(SimBackend, TheOrderOfTheCallDecides) {
  OperatorCall call{.operation = "sum", .inputs = {tensor({4}, swallowing)}};
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F));
  call.attributes["order"] = "reverse";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F + 4));  // 3 + 2^24 ties to even
  call.attributes["order"] = "pairwise";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F + 2));
  call.attributes["order"] = "perm(1,0,2,3)";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F));
  call.attributes["order"] = "perm(1,2,0,3)";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F + 4));  // 2^24 + 2 + 1: the same
  call.attributes["order"] = "lanes(0)";
  EXPECT_FALSE(make("sim")->run(call));
}

TEST(SimBackend, EveryProductIsTheSameSum) {
  const std::vector<float> ones(4, 1.0F);
  const Tensor row = tensor({1, 4}, swallowing);
  const Tensor column = tensor({4, 1}, ones);
  const OperatorCall calls[] = {
      {"linear", {row, tensor({1, 4}, ones)}, {}},
      {"matmul", {row, column}, {}},
      {"gemm", {row, column}, {}},
      {"bmm", {tensor({1, 1, 4}, swallowing), tensor({1, 4, 1}, ones)}, {}},
      {"dot", {tensor({4}, swallowing), tensor({4}, ones)}, {}},
      {"gemv", {row, tensor({4}, ones)}, {}},
      {"sum", {tensor({4}, swallowing)}, {}},
  };
  for (OperatorCall call : calls) {
    call.attributes = {{"order", "pairwise"}};
    EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p24F + 2)) << call.operation;
  }
  const OperatorCall mean{"mean", {tensor({4}, swallowing)}, {{"order", "pairwise"}}};
  EXPECT_THAT(values_of("sim", mean), ElementsAre((0x1p24F + 2) / 4));
}

TEST(SimBackend, EachOutputHasItsOwnRowAndColumn) {
  // Small integers: every order gives the exact product.
  const Tensor a = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = tensor({3, 2}, {1, 10, 2, 20, 3, 30});
  const Tensor b_transposed = tensor({2, 3}, {1, 2, 3, 10, 20, 30});
  for (const char* const backend : {"sim", "sim:torch-cpu-linear"}) {
    EXPECT_THAT(values_of(backend, {"matmul", {a, b}, {}}), ElementsAre(14, 140, 32, 320));
    EXPECT_THAT(values_of(backend, {"linear", {a, b_transposed}, {}}),
                ElementsAre(14, 140, 32, 320));
    EXPECT_THAT(values_of(backend, {"linear", {a, b_transposed, tensor({2}, {0.5F, -1})}, {}}),
                ElementsAre(14.5F, 139, 32.5F, 319));
    EXPECT_THAT(values_of(backend, {"gemv", {a, tensor({3}, {1, 2, 3})}, {}}), ElementsAre(14, 32));
    EXPECT_THAT(values_of(backend, {"dot", {tensor({3}, {1, 2, 3}), tensor({3}, {4, 5, 6})}, {}}),
                ElementsAre(32));
    const Tensor batch = tensor({2, 1, 2}, {1, 2, 3, 4});
    const Tensor other = tensor({2, 2, 1}, {5, 6, 7, 8});
    EXPECT_THAT(values_of(backend, {"bmm", {batch, other}, {}}), ElementsAre(17, 53));
  }
  EXPECT_THAT(values_of("sim", {"sum", {a}, {}}), ElementsAre(6, 15));
}

TEST(SimBackend, ProductAccumulatorAndOutput) {
  // (1 + 2^-12)² = 1 + 2^-11 + 2^-24: rounded it loses the last bit, fused it is kept until −1 is
  // added.
  const float x = 1 + 0x1p-12F;
  OperatorCall call{"dot", {tensor({2}, {-1, x}), tensor({2}, {1, x})}, {}};
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p-11F));
  call.attributes["product"] = "fused";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p-11F + 0x1p-24F));
  call.attributes["output"] = "bf16";
  EXPECT_THAT(values_of("sim", call), ElementsAre(0x1p-11F));
  OperatorCall sum{"sum", {tensor({2}, {256, 1}, softfloat::bfloat16)}, {}};
  EXPECT_THAT(values_of("sim", sum), ElementsAre(256));
  sum.attributes["output"] = "fp32";
  EXPECT_THAT(values_of("sim", sum), ElementsAre(257));
  sum.attributes["accumulator"] = "bf16";
  EXPECT_THAT(values_of("sim", sum), ElementsAre(256));
  sum.attributes["output"] = "fp33";
  EXPECT_THAT(make("sim")->run(sum).error().message, HasSubstr("output=fp33 is no format"));
  OperatorCall unit{"dot", {tensor({4}, swallowing), tensor({4}, {1, 1, 1, 1})}, {}};
  for (Tensor& input : unit.inputs) input.format = softfloat::bfloat16;
  unit.attributes = {{"order", "mma(a100.mma.bf16.f32)"}, {"output", "fp32"}};
  EXPECT_THAT(values_of("sim", unit), ElementsAre(0x1p24F + 2));  // one fused block, cut
}

TEST(SimBackend, AttentionSeesTheRightKeys) {
  // Equal scores: the output is the mean of the values of the keys that the query sees.
  const Tensor q = tensor({2, 2, 1}, {0, 0, 0, 0});
  const Tensor k = tensor({1, 4, 1}, {0, 0, 0, 0});
  const Tensor v = tensor({1, 4, 1}, {1, 2, 6, 7});
  OperatorCall call{"sdpa", {q, k, v}, {}};
  for (const char* const backend : {"sim:torch-cpu", "sim:control-attention-exact"}) {
    call.attributes["causal"] = "0";
    EXPECT_THAT(values_of(backend, call), ElementsAre(4, 4, 4, 4)) << backend;
    call.attributes["causal"] = "1";
    EXPECT_THAT(values_of(backend, call), ElementsAre(3, 4, 3, 4)) << backend;
  }
  call.attributes["splits"] = "-1";
  EXPECT_THAT(make("sim:torch-cpu")->run(call).error().message, HasSubstr("splits=-1"));
}

TEST(SimBackend, RowOperators) {
  const Tensor x = tensor({2, 2}, {0, 0, 3, -3});
  for (const SoftmaxKernel& row : softmax_kernels()) {
    const bool logarithm = takes_logarithm(row.result);
    const std::vector<float> out =
        values_of("sim:" + std::string(row.name), {logarithm ? "log-softmax" : "softmax", {x}, {}});
    ASSERT_EQ(out.size(), 4U);
    EXPECT_FLOAT_EQ(out[0], logarithm ? -0.69314718F : 0.5F) << row.name;
    EXPECT_NEAR(out[3], logarithm ? -6.0024757 : 0.0024726, 2e-6) << row.name;
  }
  for (const NormKernel& row : norm_kernels()) {
    const bool rms = row.kind == NormKind::rms;
    OperatorCall call{rms ? "rms-norm" : "layer-norm", {tensor({1, 2}, {1, 7})}, {{"eps", "0"}}};
    const std::vector<float> out = values_of("sim:" + std::string(row.name), call);
    ASSERT_EQ(out.size(), 2U);
    EXPECT_FLOAT_EQ(out[1], rms ? 1.4F : 1.0F) << row.name;
  }
  for (const ActivationKernel& row : activation_kernels()) {
    const std::vector<float> out =
        values_of("sim:" + std::string(row.name),
                  {std::string(to_string(row.function)), {tensor({2}, {0, 20})}, {}});
    EXPECT_THAT(out, ElementsAre(0, 20)) << row.name;
  }
}

TEST(SimBackend, EveryKernelRunsWhatItOffers) {
  std::set<std::string_view> names;
  const auto check = [&](const auto& rows) {
    for (const auto& row : rows) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands in two tables";
      const auto backend = make("sim:" + std::string(row.name));
      ASSERT_NE(backend, nullptr);
      EXPECT_EQ(backend->name(), "sim:" + std::string(row.name));
      EXPECT_NE(backend->fingerprint().value("source"), "");
      for (const OperatorSupport& offered : backend->operators()) {
        for (const std::string& name : offered.formats) {
          ASSERT_NE(softfloat::find_format(name), nullptr) << row.name << ": " << name;
        }
      }
    }
  };
  check(linear_kernels());
  check(attention_kernels());
  check(norm_kernels());
  check(softmax_kernels());
  check(activation_kernels());
}

TEST(SimBackend, EveryOperatorWithinTheBoundOfItsClosedForm) {
  const auto check = [](const std::string& name, const std::vector<test::Case>& cases) {
    const auto backend = make(name);
    std::set<std::string> run;
    for (const test::Case& row : cases) {
      const auto result = backend->run(row.call);
      if (!result && result.error().kind == ErrorKind::unavailable) continue;
      ASSERT_TRUE(result) << result.error().message;
      test::expect_near(row, *result);
      run.insert(row.call.operation);
    }
    EXPECT_EQ(run.size(), backend->operators().size()) << name;
  };
  std::vector<test::Case> sums = test::product_cases();
  for (test::Case& row : test::row_cases()) sums.push_back(std::move(row));
  check("sim", sums);
  check("sim:torch-cpu-linear", test::product_cases());
  check("sim:torch-cpu-linear", test::product_cases(softfloat::bfloat16));
  check("sim:torch-cpu", test::attention_cases());
  check("sim:torch-cpu-rms", test::row_cases());
  check("sim:torch-cpu-softmax", test::row_cases());
  check("sim:torch-cpu-log-softmax", test::row_cases());
  check("sim:torch-cpu-silu", test::element_cases());
}

TEST(SimBackend, Errors) {
  const auto made = make_backend("sim:h100-gem");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::usage);
  EXPECT_THAT(made.error().message, HasSubstr("did you mean 'h100-gemm'?"));
  const auto backend = make("sim:torch-cpu");
  const auto refused = backend->run({"sum", {tensor({4}, swallowing)}, {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(refused.error().message, "sim:torch-cpu does not offer sum; it has sdpa");
  EXPECT_FALSE(backend->set_threads(0));
  EXPECT_TRUE(backend->set_threads(2));
  EXPECT_EQ(backend->fingerprint().value("threads"), "2");
}

}  // namespace
}  // namespace kvsim::gpu
