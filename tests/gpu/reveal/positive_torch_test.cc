// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// PyTorch's softmax and RMS norm on this CPU: the orders of the kernel tables.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "gpu/backend.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/positive_reveal.h"
#include "gpu/setting.h"
#include "gpu/sim_backend.h"
#include "sim/engine/columns.h"
#include "sim/inputs.h"
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
  expect_order(**backend, "log-softmax", softmax->short_order, 5);
  expect_order(**backend, "log-softmax", softmax->order, 200);
  expect_order(**backend, "rms-norm", norm->order, 576);
}

/// Results of a back end's operator that are not those of a kernel row, on normal rows.
std::int64_t different_bits(Backend& backend, Backend& row, const std::string& operation,
                            const softfloat::Format& format, std::int64_t terms,
                            std::int64_t rows) {
  OperatorCall call{.operation = operation};
  Tensor x{.format = format, .shape = {rows, terms}};
  for (std::int64_t i = 0; i < rows * terms; ++i) {
    x.values.push_back(static_cast<float>(
        4 * normal(3, static_cast<std::uint64_t>(terms), static_cast<std::uint64_t>(i))));
  }
  EXPECT_TRUE(round_values(format, x.values, x.values));
  call.inputs.push_back(std::move(x));
  const auto seen = backend.run(call);
  const auto expected = row.run(call);
  EXPECT_TRUE(seen) << seen.error().message;
  EXPECT_TRUE(expected) << expected.error().message;
  if (!seen || !expected) return -1;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < seen->values.size(); ++i) {
    different += std::bit_cast<std::uint32_t>(seen->values[i]) !=
                         std::bit_cast<std::uint32_t>(expected->values[i])
                     ? 1
                     : 0;
  }
  return different;
}

TEST(TorchPositiveSums, GiveTheBitsOfTheKernelRows) {
  const auto applied = apply_setting(KVSIM_TEST_SETTING);
  ASSERT_TRUE(applied) << applied.error().message;
  const auto backend = make_backend("torch-cpu");
  ASSERT_TRUE(backend) << backend.error().message;
  const auto fingerprint = (*backend)->fingerprint();
  const std::string core(fingerprint.value(fingerprint_names::core));
  if (core != "AVX512" && core != "AVX2") GTEST_SKIP() << "skipped: new CPU key, " << core;
  const std::string name = core == "AVX512" ? "torch-cpu" : "torch-cpu-avx2";
  const auto logarithm = make_sim_backend(name + "-log-softmax");
  const auto narrow = make_sim_backend(name + "-softmax-16bit");
  const auto rounded = make_sim_backend("control-log-softmax");
  ASSERT_TRUE(logarithm && narrow && rounded);
  for (const std::int64_t terms : {1, 2, 7, 9, 16, 33, 100, 577}) {
    EXPECT_EQ(
        different_bits(**backend, **logarithm, "log-softmax", softfloat::binary32, terms, 500), 0)
        << terms;
    for (const softfloat::Format& format : {softfloat::binary16, softfloat::bfloat16}) {
      EXPECT_EQ(different_bits(**backend, **narrow, "softmax", format, terms, 500), 0)
          << softfloat::format_name(format) << " " << terms;
    }
  }
  EXPECT_GT(different_bits(**backend, **rounded, "log-softmax", softfloat::binary32, 100, 500), 0);
}

}  // namespace
}  // namespace kvsim::gpu
