// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gpu/aligned_buffer.h"
#include "gpu/backend.h"
#include "gpu/host_cpu.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using ::testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

std::vector<OperatorSupport> everything() {
  std::vector<OperatorSupport> offered;
  for (const OperatorRow& row : operator_rows()) {
    offered.push_back({std::string(row.name), {"binary32", "bfloat16"}, ""});
  }
  return offered;
}

OperatorCall call_of(std::string operation, const std::vector<Shape>& shapes) {
  OperatorCall call{.operation = std::move(operation)};
  for (const Shape& shape : shapes) {
    call.inputs.push_back(zero_tensor(softfloat::binary32, shape));
  }
  return call;
}

Result<Shape> check(const OperatorCall& call) {
  static constexpr std::string_view attributes[] = {"causal", "scale"};
  return check_call("test", call, everything(), attributes);
}

std::string message_of(const OperatorCall& call) {
  const auto checked = check(call);
  return checked ? "accepted" : checked.error().message;
}

struct Accepted {
  const char* operation;
  std::vector<Shape> inputs;
  Shape result;
};

TEST(Operators, ShapesOfResults) {
  const Accepted rows[] = {
      {"linear", {{2, 3}, {5, 3}}, {2, 5}},
      {"linear", {{2, 3}, {5, 3}, {5}}, {2, 5}},
      {"matmul", {{2, 3}, {3, 5}}, {2, 5}},
      {"gemm", {{2, 3}, {3, 5}}, {2, 5}},
      {"bmm", {{7, 2, 3}, {7, 3, 5}}, {7, 2, 5}},
      {"dot", {{3}, {3}}, {}},
      {"gemv", {{2, 3}, {3}}, {2}},
      {"sum", {{3}}, {}},
      {"mean", {{2, 5, 3}}, {2, 5}},
      {"softmax", {{2, 3}}, {2, 3}},
      {"log-softmax", {{3}}, {3}},
      {"rms-norm", {{2, 3}, {3}}, {2, 3}},
      {"layer-norm", {{2, 3}, {3}, {3}}, {2, 3}},
      {"sdpa", {{4, 2, 8}, {2, 9, 8}, {2, 9, 8}}, {4, 2, 8}},
      {"silu", {{2, 3}}, {2, 3}},
      {"add", {{2, 3}, {2, 3}}, {2, 3}},
  };
  for (const Accepted& row : rows) {
    const auto shape = check(call_of(row.operation, row.inputs));
    ASSERT_TRUE(shape) << row.operation << ": " << shape.error().message;
    EXPECT_EQ(*shape, row.result) << row.operation;
  }
}

struct Refused {
  const char* operation;
  std::vector<Shape> inputs;
  const char* words;
};

TEST(Operators, WrongShapesAreNamed) {
  const Refused rows[] = {
      {"linear", {{2, 3}, {3, 5}}, "the terms of input 1 [2][3] and input 2 [3][5] differ"},
      {"linear", {{2, 3}, {5, 3}, {4}}, "the outputs of input 2 [5][3] and input 3 [4] differ"},
      {"linear", {{2, 3}}, "linear got 1 inputs, and takes x [M][K]"},
      {"matmul", {{2, 3}, {5, 3}}, "the terms"},
      {"bmm", {{7, 2, 3}, {6, 3, 5}}, "the batches"},
      {"bmm", {{2, 3}, {3, 5}}, "input 1 has shape [2][3], which needs 3 dimensions"},
      {"dot", {{3}, {4}}, "the terms"},
      {"gemv", {{2, 3}, {2}}, "the terms"},
      {"sum", {{}}, "needs 1 dimension or more"},
      {"rms-norm", {{2, 3}, {2}}, "the last dimensions"},
      {"sdpa", {{3, 2, 8}, {2, 9, 8}, {2, 9, 8}}, "3 query heads are no multiple of 2 K/V heads"},
      {"sdpa", {{4, 2, 8}, {2, 9, 8}, {2, 8, 8}}, "the shapes of input 2"},
      {"add", {{2, 3}, {3, 2}}, "the shapes"},
      {"lineer", {{2, 3}, {5, 3}}, "did you mean 'linear'?"},
  };
  for (const Refused& row : rows) {
    const OperatorCall call = call_of(row.operation, row.inputs);
    EXPECT_THAT(message_of(call), HasSubstr(row.words)) << row.operation;
    EXPECT_EQ(check(call).error().kind, ErrorKind::usage) << row.operation;
  }
}

TEST(Operators, WrongTensorsAreNamed) {
  OperatorCall call = call_of("sum", {{4}});
  call.inputs[0].values.pop_back();
  EXPECT_EQ(message_of(call), "sum: input 1 has 3 numbers, and shape [4] needs 4");
  call = call_of("sum", {{4}});
  call.inputs[0].shape = {0};
  EXPECT_THAT(message_of(call), HasSubstr("a size below 1"));
  call.inputs[0].shape = {1 << 20, 1 << 20, 1 << 30};
  EXPECT_THAT(message_of(call), HasSubstr("more than 2147483648 numbers"));
  call = call_of("sum", {{4}});
  for (const std::int64_t wrong : {-4, 2, 64}) {
    call.inputs[0].misalignment = wrong;
    EXPECT_THAT(message_of(call), HasSubstr("misalignment")) << wrong;
  }
  call.inputs[0].misalignment = 60;
  EXPECT_EQ(message_of(call), "accepted");
  call.inputs[0].format = softfloat::bfloat16;
  call.inputs[0].values = {1, 2, 0x1.01p0F, 4};
  EXPECT_EQ(message_of(call), "sum: input 1: 1.0039062 at 2 is no number of bfloat16");
  call = call_of("add", {{4}, {4}});
  call.inputs[1].format = softfloat::bfloat16;
  EXPECT_EQ(message_of(call), "add: input 2 is in bfloat16, and input 1 in binary32");
}

TEST(Operators, WhatIsNotOfferedIsUnavailable) {
  std::vector<OperatorSupport> offered = {{"dot", {"binary32"}, ""}, {"gemv", {"binary32"}, ""}};
  auto refused = check_call("blas", call_of("sum", {{4}}), offered, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(refused.error().message, "blas does not offer sum; it has dot, gemv");
  OperatorCall call = call_of("dot", {{4}, {4}});
  for (Tensor& tensor : call.inputs) tensor.format = softfloat::binary16;
  refused = check_call("blas", call, offered, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(refused.error().message, "blas does not offer dot in binary16; it has binary32");
}

TEST(Operators, Attributes) {
  OperatorCall call = call_of("sum", {{4}});
  call.attributes["window"] = "3";
  EXPECT_EQ(message_of(call), "sum takes no attribute 'window' here; accepted: causal, scale");
  call.attributes = {{"scale", "0.125"}, {"causal", "1"}};
  EXPECT_EQ(message_of(call), "accepted");
  EXPECT_EQ(*number_attribute(call, "scale", 1), 0.125);
  EXPECT_EQ(*number_attribute(call, "eps", 1e-5), 1e-5);
  EXPECT_TRUE(*flag_attribute(call, "causal", false));
  call.attributes = {{"scale", "1x"}, {"causal", "yes"}};
  EXPECT_EQ(number_attribute(call, "scale", 1).error().message,
            "sum: attribute scale=1x is no number");
  EXPECT_EQ(flag_attribute(call, "causal", false).error().message,
            "sum: attribute causal=yes is neither 0 nor 1");
}

TEST(AlignedBuffers, BeginWhereTheyAreTold) {
  const std::vector<float> values = {1, 2, 3};
  for (const std::int64_t misalignment : {0, 2, 4, 60, 63}) {
    AlignedBuffer buffer(values, misalignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64,
              static_cast<std::uintptr_t>(misalignment));
    AlignedBuffer moved = std::move(buffer);
    float third = 0;
    std::memcpy(&third, moved.data() + 8, 4);
    EXPECT_EQ(third, 3);
  }
}

TEST(Fingerprints, TheKeyHoldsWhatDecidesKernels) {
  Fingerprint fingerprint;
  fingerprint.entries = {{"backend", "b"}, {"threads", "2"}, {"cpu-vendor", "v"}};
  EXPECT_EQ(fingerprint.key(), "backend=b; cpu-vendor=v");
  EXPECT_EQ(fingerprint.value("threads"), "2");
  EXPECT_EQ(fingerprint.value("setting"), "");
  add_host_cpu(fingerprint);
  EXPECT_NE(fingerprint.value("cpu-model"), "");
}

TEST(Fingerprints, TheFeaturesAreThoseThatTheCompilerSees) {
#if defined(__x86_64__)
  const std::string features = " " + host_cpu().features + " ";
  EXPECT_EQ(features.find(" avx2 ") != std::string::npos, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(features.find(" fma ") != std::string::npos, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(features.find(" avx512_bf16 ") != std::string::npos,
            __builtin_cpu_supports("avx512bf16") != 0);
#endif
}

TEST(Backends, AnUnknownNameIsRefused) {
  const auto made = make_backend("no-such-back-end");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::usage);
  EXPECT_THAT(made.error().message, HasSubstr("no back end is called 'no-such-back-end'"));
}

#ifndef KVSIM_HAS_TORCH
TEST(Backends, WithoutLibtorchTheErrorSaysHowToGetIt) {
  const auto made = make_backend("torch-cpu");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(made.error().message, HasSubstr("this build has no libtorch; install torch 2.11"));
}
#endif

TEST(Backends, NamesWithAndWithoutAnArgument) {
  const auto made = make_backend("torch-cpu:x");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "back end 'torch-cpu' takes nothing after a colon, and got 'x'");
}

}  // namespace
}  // namespace kvsim::gpu
