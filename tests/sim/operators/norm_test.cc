// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "softfloat/formats.h"
#include "tests/sim/operators/plain.h"

namespace kvsim {
namespace {

using oracle::Number;
using oracle::Random;
using oracle::Terms;

/// One row, operation by operation, straight from the rules.
std::vector<float> plain_norm(const NormKernel& kernel, const NormProblem& problem,
                              const float* row) {
  const auto n = static_cast<std::size_t>(problem.columns);
  const Number length(static_cast<float>(n));
  Terms terms;
  terms.fused = kernel.product == Product::fused;
  for (std::size_t k = 0; k < n; ++k) terms.a.emplace_back(row[k]);
  if (kernel.kind == NormKind::layer) {
    terms.b.assign(n, Number(1));
    const Number mean = oracle::plain_sum(kernel.name, terms) / length;
    for (Number& x : terms.a) x = x - mean;
  }
  terms.b = terms.a;
  const Number variance = oracle::plain_sum(kernel.name, terms) / length;
  const Number v = variance + Number(static_cast<float>(problem.epsilon));
  const Number r = kernel.root == RootRule::one_rounding ? oracle::by_mpfr(mpfr_rec_sqrt, v)
                                                         : Number(1) / oracle::sqrt(v);
  std::vector<float> result;
  for (std::size_t k = 0; k < n; ++k) {
    Number y = terms.a[k] * r;
    const Number w(problem.weight[k]);
    switch (kernel.weight) {
      case WeightRule::after_rounding:
        y = y.rounded(problem.storage) * w;
        break;
      case WeightRule::before_rounding:
        y = y * w;
        break;
      case WeightRule::plus_one:
        y = y * (Number(1) + w);
        break;
    }
    if (problem.bias != nullptr) y = y + Number(problem.bias[k]);
    result.push_back(y.rounded(problem.storage).value());
  }
  return result;
}

// 100 shapes for each row, in binary16, bfloat16 and binary32, at the best and the portable level.
TEST(Norm, EqualsThePlainVersion) {
  for (const NormKernel& kernel : norm_kernels()) {
    Random random(11);
    for (int shape = 0; shape < 100; ++shape) {
      NormProblem problem;
      problem.storage = random.storage();
      problem.rows = random.integer(1, 3);
      problem.columns = random.length();
      problem.epsilon = shape % 2 == 0 ? 1e-5 : 1e-6;
      const auto columns = static_cast<std::size_t>(problem.columns);
      const auto x =
          random.numbers(problem.storage, static_cast<std::size_t>(problem.rows) * columns, 1.5);
      const auto weight = random.numbers(problem.storage, columns);
      const auto bias = random.numbers(problem.storage, columns);
      problem.x = x.data();
      problem.weight = weight.data();
      if (shape % 3 == 0) problem.bias = bias.data();
      std::vector<float> out(x.size()), scalar(x.size());
      ASSERT_TRUE(apply_norm(kernel, problem, out.data()));
      ASSERT_TRUE(apply_norm(kernel, problem, scalar.data(), {2, SimdLevel::scalar}));
      ASSERT_EQ(out, scalar);
      for (std::size_t row = 0; row < static_cast<std::size_t>(problem.rows); ++row) {
        const std::vector<float> expected = plain_norm(kernel, problem, x.data() + row * columns);
        const std::vector<float> got(
            out.begin() + static_cast<std::ptrdiff_t>(row * columns),
            out.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns));
        ASSERT_EQ(got, expected) << kernel.name << ", shape " << shape << ", " << columns
                                 << " columns";
      }
    }
  }
}

// x = (3, 4): Σ x²/2 = 12.5; with ε = 0 the results are 3/√12.5 and 4/√12.5.
TEST(Norm, ByHand) {
  const std::vector<float> x{3, 4};
  const std::vector<float> weight{1, 0.5F};
  std::vector<float> out(2);
  NormProblem problem{.storage = softfloat::binary32,
                      .rows = 1,
                      .columns = 2,
                      .x = x.data(),
                      .weight = weight.data(),
                      .epsilon = 0};
  ASSERT_TRUE(apply_norm(*find_norm_kernel("control-rms"), problem, out.data()));
  EXPECT_NEAR(out[0], 3 / std::sqrt(12.5), 1e-7);
  EXPECT_NEAR(out[1], 2 / std::sqrt(12.5), 1e-7);
  ASSERT_TRUE(apply_norm(*find_norm_kernel("control-rms-gemma"), problem, out.data()));
  EXPECT_NEAR(out[0], 6 / std::sqrt(12.5), 2e-7);
  EXPECT_NEAR(out[1], 6 / std::sqrt(12.5), 2e-7);
  problem.weight = nullptr;  // layer: (x − 3.5)/0.5
  ASSERT_TRUE(apply_norm(*find_norm_kernel("control-layer"), problem, out.data()));
  EXPECT_EQ(out, (std::vector<float>{-1, 1}));
}

TEST(Norm, InPlaceEmptyAndRefused) {
  std::vector<float> x{1, 2, 3, 4};
  NormProblem problem{.storage = softfloat::bfloat16, .rows = 2, .columns = 2, .x = x.data()};
  std::vector<float> out(4);
  const NormKernel& kernel = *find_norm_kernel("gpu-rms");
  ASSERT_TRUE(apply_norm(kernel, problem, out.data()));
  ASSERT_TRUE(apply_norm(kernel, problem, x.data()));
  EXPECT_EQ(x, out);
  problem.rows = 0;
  EXPECT_TRUE(apply_norm(kernel, problem, out.data()));
  problem.rows = -1;
  const auto refused = apply_norm(kernel, problem, out.data());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("-1 rows"), std::string::npos);
  problem.rows = 1;
  problem.storage = softfloat::binary64;
  EXPECT_FALSE(apply_norm(kernel, problem, out.data()));
}

}  // namespace
}  // namespace kvsim
