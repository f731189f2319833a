// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// PyTorch's softmax and RMS norm on this CPU: the orders of the kernel tables.
#include <gtest/gtest.h>

#include <string>

#include "gpu/backend.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/positive_reveal.h"
#include "gpu/setting.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

void expect_order(Backend& backend, const std::string& operation, std::string_view order,
                  std::int64_t terms) {
  auto of = PositiveOperator::make(
      backend,
      {.operation = operation, .format = softfloat::binary32, .columns = 64, .terms = terms});
  ASSERT_TRUE(of);
  const auto found = reveal_positive(*of);
  ASSERT_TRUE(found) << found.error().message;
  const auto declared = build_sum_tree(*parse_order(order), terms);
  ASSERT_TRUE(declared);
  EXPECT_EQ(to_string(found->tree), to_string(addition_tree(*declared)));
  EXPECT_TRUE(found->explained());
}

TEST(TorchPositiveSums, AreAddedAsTheKernelRowsSay) {
  const auto applied = apply_setting(KVSIM_TEST_SETTING);
  ASSERT_TRUE(applied) << applied.error().message;
  const auto backend = make_backend("torch-cpu");
  ASSERT_TRUE(backend) << backend.error().message;
  const auto fingerprint = (*backend)->fingerprint();
  const std::string core(fingerprint.value(fingerprint_names::core));
  if (core != "AVX512" && core != "AVX2") GTEST_SKIP() << "skipped: new CPU key, " << core;
  const SoftmaxKernel* const softmax =
      find_softmax_kernel(core == "AVX512" ? "torch-cpu-softmax" : "torch-cpu-avx2-softmax");
  const NormKernel* const norm = find_norm_kernel("torch-cpu-rms");
  ASSERT_TRUE(softmax != nullptr && norm != nullptr);
  expect_order(**backend, "softmax", softmax->short_order, 5);
  expect_order(**backend, "softmax", softmax->order, 200);
  expect_order(**backend, "rms-norm", norm->order, 576);
}

}  // namespace
}  // namespace kvsim::gpu
