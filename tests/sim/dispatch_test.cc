// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/dispatch.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/attention/kernel.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"
#include "sim/operators/softmax.h"

namespace kvsim {
namespace {

struct Expected {
  const char* name;
  const char* attention;
  std::int64_t multiprocessors;
  const char* one_row;
  const char* many_rows;
};

// Written by hand: the attention kernel that each device stands for, and the vendors' counts of
// multiprocessors.
const Expected expected_rows[] = {
    {"h100", "h100-fa3", 132, "h100-gemv", "h100-gemm"},
    {"a100", "a100-fa2", 108, "a100-gemv", "a100-gemm"},
    {"v100", "v100-eager", 80, "v100-gemv", "v100-gemm"},
    {"b200", "b200-fa4", 148, "b200-gemv", "b200-gemm"},
    {"mi300", "mi300-fa2", 304, "mi300-gemv", "mi300-gemm"},
    {"cpu", "torch-cpu", 1, "torch-cpu-linear", "torch-cpu-linear"},
    {"cpu-avx2", "torch-cpu-avx2", 1, "torch-cpu-avx2-linear", "torch-cpu-avx2-linear"},
    {"llama.cpp-cpu", "llama.cpp-cpu", 1, "llama.cpp-cpu-linear", "llama.cpp-cpu-linear"},
    {"batch-invariant", "h100-fa2", 132, "h100-batch-invariant", "h100-batch-invariant"},
    {"batch-invariant-fp32", "h100-eager", 132, "h100-batch-invariant", "h100-batch-invariant"},
    {"fp32", "h100-eager", 132, "h100-gemv", "h100-gemm"},
    {"layercast", "h100-eager", 132, "h100-gemv", "h100-gemm"},
    {"exact", "control-attention-exact", 1, "control-linear-exact", "control-linear-exact"},
};

TEST(Dispatch, PicksTheDevicesKernels) {
  for (const Expected& expected : expected_rows) {
    SCOPED_TRACE(expected.name);
    const auto row = find_dispatch(expected.name);
    ASSERT_TRUE(row) << row.error().message;
    const Dispatch& dispatch = **row;
    EXPECT_EQ(dispatch.attention_decode, expected.attention);
    EXPECT_EQ(dispatch.attention_prefill, expected.attention);
    EXPECT_EQ(dispatch.multiprocessors, expected.multiprocessors);
    EXPECT_EQ(linear_kernel_for(dispatch, 1).value()->name, expected.one_row);
    EXPECT_EQ(linear_kernel_for(dispatch, 4096).value()->name, expected.many_rows);
  }
  const Dispatch& h100 = *find_dispatch("h100").value();
  EXPECT_EQ(linear_kernel_for(h100, 2).value()->name, "h100-splitk");
  EXPECT_EQ(linear_kernel_for(h100, 64).value()->name, "h100-splitk");
  EXPECT_EQ(linear_kernel_for(h100, 65).value()->name, "h100-gemm");
  EXPECT_EQ(find_dispatch("batch-invariant").value()->decode_splits, 1);
  EXPECT_EQ(find_dispatch("batch-invariant").value()->prefill_splits, 1);
  EXPECT_EQ(find_dispatch("h100-fa3").value(), &h100);
  EXPECT_EQ(find_dispatch("a100-fa2").value(), find_dispatch("a100").value());
  EXPECT_EQ(find_dispatch("torch-cpu").value(), find_dispatch("cpu").value());
}

TEST(Dispatch, NamesOnlyKernelsThatExist) {
  std::set<std::string_view> names;
  for (const Dispatch& row : dispatches()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_FALSE(row.source.empty());
    if (row.arithmetic != DispatchArithmetic::kernels) continue;
    for (const std::int64_t rows : {1, 2, 64, 65, 100000}) {
      const auto kernel = linear_kernel_for(row, rows);
      EXPECT_TRUE(kernel) << kernel.error().message;
    }
    EXPECT_NE(find_norm_kernel(row.norm), nullptr);
    EXPECT_NE(find_norm_kernel(row.norm_plus_one), nullptr);
    EXPECT_EQ(find_norm_kernel(row.norm_plus_one)->weight, WeightRule::plus_one);
    EXPECT_NE(find_softmax_kernel(row.softmax), nullptr);
    EXPECT_NE(find_softmax_kernel(row.log_softmax), nullptr);
    EXPECT_NE(find_rope_kernel(row.rope), nullptr);
    EXPECT_EQ(find_activation_kernel(row.silu)->function, ActivationFunction::silu);
    EXPECT_EQ(find_activation_kernel(row.gelu)->function, ActivationFunction::gelu);
    EXPECT_EQ(find_activation_kernel(row.gelu_tanh)->function, ActivationFunction::gelu_tanh);
    EXPECT_NE(find_residual_kernel(row.residual), nullptr);
    for (const std::string_view name : {row.attention_prefill, row.attention_decode}) {
      const AttentionKernel* kernel = find_attention_kernel(name);
      ASSERT_NE(kernel, nullptr) << name;
      const std::int64_t count = kernel->multiprocessors;
      EXPECT_TRUE(count == 0 || count == row.multiprocessors) << count;
    }
  }
}

TEST(Dispatch, PrintsAndCompares) {
  const Dispatch& h100 = *find_dispatch("h100").value();
  const Dispatch& a100 = *find_dispatch("a100").value();
  const Dispatch& cpu = *find_dispatch("cpu").value();
  const std::string text = to_text(h100);
  EXPECT_TRUE(text.starts_with("h100: NVIDIA H100 SXM\n")) << text;
  EXPECT_NE(text.find("\n  linear.m2-64            h100-splitk\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  attention.decode        h100-fa3\n"), std::string::npos) << text;
  EXPECT_EQ(diff_text(h100, h100), "");
  EXPECT_EQ(diff_text(h100, a100),
            "- multiprocessors: 132\n+ multiprocessors: 108\n"
            "- linear.m1: h100-gemv\n+ linear.m1: a100-gemv\n"
            "- linear.m2-64: h100-splitk\n+ linear.m2-64: a100-splitk\n"
            "- linear.m65+: h100-gemm\n+ linear.m65+: a100-gemm\n"
            "- attention.prefill: h100-fa3\n+ attention.prefill: a100-fa2\n"
            "- attention.decode: h100-fa3\n+ attention.decode: a100-fa2\n");
  const std::string across = diff_text(h100, cpu);
  EXPECT_NE(across.find("- linear.m1: h100-gemv\n- linear.m2-64"), std::string::npos);
  EXPECT_NE(across.find("+ linear: torch-cpu-linear\n"), std::string::npos) << across;
}

TEST(Dispatch, NamesWhatIsAccepted) {
  const auto unknown = find_dispatch("h10");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::usage);
  EXPECT_NE(unknown.error().message.find("accepted: h100, h100-fa3, a100, a100-fa2"),
            std::string::npos);
  EXPECT_NE(unknown.error().message.find("did you mean h100?"), std::string::npos);
  EXPECT_FALSE(linear_kernel_for(*find_dispatch("binary64").value(), 1));
}

}  // namespace
}  // namespace kvsim
