// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/operators.h"
#include "gpu/setting.h"
#include "softfloat/formats.h"
#include "tests/gpu/closed_forms.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One process has one setting: KVSIM_TEST_SETTING, which the build file gives to each program.
class TorchCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto applied = apply_setting(KVSIM_TEST_SETTING);
    ASSERT_TRUE(applied) << applied.error().message;
    auto made = make_backend("torch-cpu");
    ASSERT_TRUE(made) << made.error().message;
    backend = std::move(*made);
  }
  std::unique_ptr<Backend> backend;
};

TEST_F(TorchCpu, EveryOperatorWithinTheBoundOfItsClosedForm) {
  for (const softfloat::Format& format :
       {softfloat::binary32, softfloat::bfloat16, softfloat::binary16}) {
    std::set<std::string> run;
    for (const auto& cases : {test::product_cases(format), test::row_cases(format),
                              test::element_cases(format), test::attention_cases(format)}) {
      for (const test::Case& row : cases) {
        const auto result = backend->run(row.call);
        ASSERT_TRUE(result) << result.error().message;
        test::expect_near(row, *result);
        run.insert(row.call.operation);
      }
    }
    EXPECT_EQ(run.size(), operator_rows().size());
  }
}

TEST_F(TorchCpu, MisalignedInputsAndTwoThreadsStayWithinTheBound) {
  for (const std::int64_t threads : {1, 2}) {
    ASSERT_TRUE(backend->set_threads(threads));
    EXPECT_EQ(backend->fingerprint().value("threads"), std::to_string(threads));
    for (const std::int64_t misalignment : {4, 12, 36, 60}) {
      test::Case row = test::product_case("linear", 1, 515, 67);
      for (Tensor& input : row.call.inputs) input.misalignment = misalignment;
      const auto result = backend->run(row.call);
      ASSERT_TRUE(result) << result.error().message;
      test::expect_near(row, *result);
    }
  }
}

TEST_F(TorchCpu, AttentionBackends) {
  for (const char* const implementation : {"chosen", "flash", "math"}) {
    for (test::Case& row : test::attention_cases()) {
      row.call.attributes["backend"] = implementation;
      const auto result = backend->run(row.call);
      ASSERT_TRUE(result) << result.error().message;
      test::expect_near(row, *result);
    }
  }
  // The scale replaces 1/√d: with 0 every score is equal, and the result the mean of v.
  OperatorCall call{.operation = "sdpa", .attributes = {{"scale", "0"}}};
  const Tensor x{softfloat::binary32, {1, 2, 1}, {3, 5}};
  call.inputs = {x, x, x};
  const auto result = backend->run(call);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->values, ElementsAre(4, 4));
}

TEST_F(TorchCpu, TheOutputArgumentKeepsTheSumUnrounded) {
  OperatorCall call{.operation = "sum"};
  call.inputs = {Tensor{softfloat::bfloat16, {2}, {256, 1}}};
  EXPECT_THAT(backend->run(call)->values, ElementsAre(256));
  call.attributes["output"] = "fp32";
  const auto result = backend->run(call);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->values, ElementsAre(257));
  EXPECT_EQ(result->format, softfloat::binary32);
}

TEST_F(TorchCpu, TheFingerprintSaysWhatTheBitsHangOn) {
  const Fingerprint fingerprint = backend->fingerprint();
  EXPECT_THAT(std::string(fingerprint.value("version")), HasSubstr("torch 2."));
  EXPECT_THAT(std::string(fingerprint.value("mkl")), HasSubstr("Version"));
  EXPECT_NE(fingerprint.value("onednn"), "");
  EXPECT_EQ(fingerprint.value("threads"), "1");
  EXPECT_EQ(fingerprint.value("setting"), KVSIM_TEST_SETTING);
  if (fingerprint.value("setting") == "pinned") {
    EXPECT_EQ(fingerprint.value("core"), "AVX2");
    EXPECT_EQ(fingerprint.value("onednn-enabled"), "0");
    EXPECT_EQ(fingerprint.value("MKL_CBWR"), "AVX2");
  } else {
    EXPECT_EQ(fingerprint.value("onednn-enabled"), "1");
  }
  EXPECT_THAT(fingerprint.key(), HasSubstr("; setting=" KVSIM_TEST_SETTING));
}

TEST_F(TorchCpu, TheSettingIsFixedOnceLibtorchIsLoaded) {
  const std::string other = current_setting().name == "pinned" ? "installed" : "pinned";
  const auto late = apply_setting(other);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("comes too late"));
  EXPECT_TRUE(apply_setting(current_setting().name));
  EXPECT_THAT(apply_setting("fast").error().message, HasSubstr("there are installed, pinned"));
}

TEST_F(TorchCpu, Errors) {
  OperatorCall call = test::attention_cases()[2].call;
  call.attributes["causal"] = "1";
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("needs as many of each"));
  call.attributes = {{"backend", "efficient"}};
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("none of chosen, flash, math"));
  call = test::row_cases()[0].call;
  call.attributes["output"] = "e4m3";
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("output=e4m3 is none of"));
  call.attributes = {{"eps", "1"}};
  EXPECT_EQ(backend->run(call).error().kind, ErrorKind::usage);
  call.attributes = {};
  call.inputs[0].format = softfloat::e4m3;
  call.inputs[0].values = {1};
  EXPECT_EQ(backend->run(call).error().kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace kvsim::gpu
