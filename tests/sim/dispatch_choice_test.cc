// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

DispatchChoice choice(std::string_view name) { return DispatchChoice::named(name).value(); }

std::string line_of(const DispatchChoice& dispatch, std::string_view line) {
  for (const DispatchLine& each : dispatch.lines()) {
    if (each.operation == line) return each.kernel;
  }
  return "";
}

// What is printed is what is accepted: a dispatch is made again from its own lines, whatever it is
// made from.
TEST(DispatchChoice, LinesAreAcceptedAsTheyArePrinted) {
  std::vector<DispatchChoice> all;
  for (const Dispatch& row : dispatches()) {
    if (row.arithmetic == DispatchArithmetic::kernels) all.emplace_back(row);
  }
  all.push_back(choice("h100-fa3"));
  EXPECT_TRUE(all.back().set("linear.m1", "gemv.lanes(32,4)"));
  EXPECT_TRUE(all.back().set("linear.m16-64", "h100-splitk.mma(h100.wgmma.bf16.f32)"));
  EXPECT_TRUE(all.back().set("attention.decode", "fa2.split8"));
  EXPECT_TRUE(all.back().set("format.kv", "fp8e4m3") || all.back().set("format.kv", "e4m3"));
  for (const DispatchChoice& from : all) {
    for (const std::string_view base : {"v100", "torch-cpu"}) {
      DispatchChoice made = choice(base);
      for (const DispatchLine& line : from.lines()) {
        const Result<bool> done = made.set(line.operation, line.kernel);
        EXPECT_TRUE(done) << done.error().message;
      }
      EXPECT_EQ(made.lines(), from.lines()) << from.name();
    }
  }
}

TEST(DispatchChoice, ChangesOneLine) {
  DispatchChoice h100 = choice("h100-fa3");
  const std::vector<DispatchLine> before = h100.lines();
  ASSERT_TRUE(h100.set("attention.decode", "fa2.split8"));
  EXPECT_EQ(line_of(h100, "attention.decode"), "h100-fa2.split8");
  EXPECT_EQ(line_of(h100, "attention.prefill"), "h100-fa3");
  EXPECT_EQ(h100.dispatch().decode_splits, 8);
  EXPECT_EQ(h100.dispatch().prefill_splits, 0);
  ASSERT_TRUE(h100.set("attention.decode", "h100-fa3"));
  EXPECT_EQ(h100.lines(), before);
  ASSERT_TRUE(h100.set("norm", "gpu-rms-fused"));
  EXPECT_EQ(h100.dispatch().norm, "gpu-rms-fused");
  ASSERT_TRUE(h100.set("multiprocessors", "114"));
  EXPECT_EQ(h100.dispatch().multiprocessors, 114);
  ASSERT_TRUE(h100.set("format.logits", "fp32"));
  EXPECT_EQ(h100.dispatch().formats.logits, softfloat::binary32);
  ASSERT_TRUE(h100.set("dispatch", "h100"));
  EXPECT_EQ(h100.lines(), before);
}

TEST(DispatchChoice, CutsTheRowsOfLinearLayers) {
  DispatchChoice h100 = choice("h100-fa3");
  const auto kernel = [&](std::int64_t rows) {
    return std::string(linear_kernel_for(h100.dispatch(), rows).value()->name);
  };
  ASSERT_TRUE(h100.set("linear.m16-80", "h100-gemv"));
  EXPECT_EQ(kernel(1), "h100-gemv");
  EXPECT_EQ(kernel(2), "h100-splitk");
  EXPECT_EQ(kernel(15), "h100-splitk");
  EXPECT_EQ(kernel(16), "h100-gemv");
  EXPECT_EQ(kernel(80), "h100-gemv");
  EXPECT_EQ(kernel(81), "h100-gemm");
  EXPECT_EQ(line_of(h100, "linear.m2-15"), "h100-splitk");
  EXPECT_EQ(line_of(h100, "linear.m81+"), "h100-gemm");
  ASSERT_TRUE(h100.set("linear.m40", "h100-gemm"));
  EXPECT_EQ(kernel(39) + " " + kernel(40) + " " + kernel(41), "h100-gemv h100-gemm h100-gemv");
  ASSERT_TRUE(h100.set("linear.m100+", "a100-gemm"));
  EXPECT_EQ(kernel(99) + " " + kernel(1 << 20), "h100-gemm a100-gemm");
  ASSERT_TRUE(h100.set("linear", "batch-invariant"));
  EXPECT_EQ(line_of(h100, "linear"), "h100-batch-invariant");
  EXPECT_EQ(h100.dispatch().linear.size(), 1U);
}

TEST(DispatchChoice, GivesAKernelAnotherOrder) {
  DispatchChoice h100 = choice("h100-fa3");
  ASSERT_TRUE(h100.set("linear.m1", "gemv.lanes(32, 4)"));
  const DispatchChoice copy = h100;  // outlives the one that it was made from
  h100 = choice("a100");
  const LinearKernel& kernel = *linear_kernel_for(copy.dispatch(), 1).value();
  EXPECT_EQ(kernel.name, "h100-gemv.lanes(32,4)");
  const auto order = linear_order(kernel, {1, 64, 256, softfloat::bfloat16, 132});
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(to_string(*order), "lanes(32,4)");
  EXPECT_EQ(linear_kernel_for(copy.dispatch(), 2).value()->name, "h100-splitk");
}

TEST(DispatchChoice, SettingsOfAnArmBeginWithTheSet) {
  DispatchChoice arm = choice("h100-fa3");
  const std::vector<DispatchSetting> settings{
      {"attention.decode", "fa2"}, {"dispatch", "a100-fa2"}, {"format.kv", "fp16"}};
  ASSERT_TRUE(arm.set_all(settings));
  EXPECT_EQ(line_of(arm, "attention.decode"), "a100-fa2");
  EXPECT_EQ(line_of(arm, "format.kv"), "binary16");
  EXPECT_EQ(arm.name(), "a100");
  const std::vector<DispatchLine> before = arm.lines();
  const std::vector<DispatchSetting> wrong{{"norm", "control-rms"}, {"rope", "no-rope"}};
  EXPECT_FALSE(arm.set_all(wrong));
  EXPECT_EQ(arm.lines(), before);
}

TEST(DispatchChoice, SaysWhatIsAccepted) {
  DispatchChoice h100 = choice("h100-fa3");
  const auto error = [&](std::string_view line, std::string_view value) {
    const Result<bool> done = h100.set(line, value);
    return done ? std::string("none") : done.error().message;
  };
  const auto expect = [&](std::string_view line, std::string_view value, const char* part) {
    const std::string message = error(line, value);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  expect("attention.decod", "fa2", "did you mean attention.decode?");
  expect("linear.m0", "gemv", "line 'linear.m0' of a dispatch; accepted: dispatch, ");
  expect("linear.m9-3", "gemv", "line 'linear.m9-3'");
  expect("attention.decode", "fa9", "attention.decode=fa9; accepted: an attention kernel");
  expect("attention.decode", "fa3.split0", "KERNEL.splitN with N from 1 to 4096");
  expect("attention.decode", "h100-eager.split2", "h100-eager does not split the keys");
  expect("linear.m1", "gemw", "linear.m1=gemw; accepted: a linear kernel");
  expect("linear.m1", "gemv.lanes(0)", "linear.m1=gemv.lanes(0): ");
  expect("linear.m1", "gemv.mma(h100.wgmma.e4m3.f32)", "no storage format of kernel h100-gemv");
  expect("silu", "gpu-gelu", "silu=gpu-gelu; accepted: a kernel of its table: torch-cpu-silu");
  expect("norm", "gpu-rms-gemma", "norm=gpu-rms-gemma; accepted");
  expect("format.kv", "binary64", "format.kv=binary64; accepted: default, or");
  expect("multiprocessors", "0", "multiprocessors=0; accepted: 1 to 65536");
  expect("dispatch", "h101", "dispatch 'h101'");
  DispatchChoice wide = choice("binary64");
  EXPECT_NE(wide.set("norm", "control-rms").error().message.find("names no kernels"),
            std::string::npos);
}

}  // namespace
}  // namespace kvsim
