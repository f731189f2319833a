// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "softfloat/formats.h"
#include "tests/sim/exp_plain.h"
#include "tests/sim/operators/plain.h"

namespace kvsim {
namespace {

using oracle::Number;
using oracle::Random;
using oracle::Terms;

constexpr float infinity = std::numeric_limits<float>::infinity();

Number plain_exp(ExpModel model, Number t) {
  switch (model) {
    case ExpModel::sleef_u10:
      return oracle::plain_sleef_u10(t.value());
    case ExpModel::ex2_approx: {
      const float result = oracle::rounded_exp2((t * Number(1.44269504F)).value());
      return result < 0x1p-126F ? 0.0F : result;
    }
    default:
      return oracle::by_mpfr(mpfr_exp, t);
  }
}

/// One row, operation by operation, straight from the rules.
std::vector<float> plain_softmax(const SoftmaxKernel& kernel, const SoftmaxProblem& problem,
                                 const float* row) {
  float largest = -infinity;
  for (std::int64_t k = 0; k < problem.columns; ++k) largest = std::fmax(largest, row[k]);
  std::vector<Number> t;
  Terms terms;
  for (std::int64_t k = 0; k < problem.columns; ++k) {
    t.push_back(Number(row[k]) - Number(largest));
    // 16-bit rows: whole vectors by SLEEF, the rest by the C library.
    const std::int64_t width = kernel.name.starts_with("torch-cpu-avx2") ? 8 : 16;
    const bool has_tail = kernel.name.ends_with("-16bit");
    const std::int64_t vectors = has_tail ? problem.columns / width * width : problem.columns;
    terms.a.push_back(k < vectors ? plain_exp(kernel.exp, t.back())
                                  : Number(oracle::plain_libm_expf(t.back().value())));
    terms.b.emplace_back(1.0F);
  }
  const Number sum = oracle::plain_sum(kernel.name, terms);
  std::vector<float> result;
  for (std::size_t k = 0; k < t.size(); ++k) {
    Number y;
    switch (kernel.result) {
      case SoftmaxResult::times_reciprocal:
        y = terms.a[k] * (Number(1) / sum);
        break;
      case SoftmaxResult::quotient:
        y = terms.a[k] / sum;
        break;
      case SoftmaxResult::logarithm:
        y = t[k] - oracle::by_mpfr(mpfr_log, sum);
        break;
      case SoftmaxResult::sleef_logarithm:
        y = t[k] - Number(oracle::plain_sleef_log(sum.value()));
        break;
    }
    result.push_back(y.rounded(problem.storage).value());
  }
  return result;
}

// 100 shapes for each row, in binary16, bfloat16 and binary32, at the best and the portable level.
TEST(Softmax, EqualsThePlainVersion) {
  for (const SoftmaxKernel& kernel : softmax_kernels()) {
    Random random(12);
    for (int shape = 0; shape < 100; ++shape) {
      SoftmaxProblem problem;
      problem.storage = random.storage();
      problem.rows = random.integer(1, 3);
      problem.columns = random.length();
      const auto columns = static_cast<std::size_t>(problem.columns);
      auto x = random.numbers(softfloat::binary32, static_cast<std::size_t>(problem.rows) * columns,
                              shape % 2 == 0 ? 3 : 20);
      if (shape % 4 == 1 && columns > 2) x[columns / 2] = -infinity;  // a masked score
      problem.x = x.data();
      std::vector<float> out(x.size()), scalar(x.size());
      ASSERT_TRUE(apply_softmax(kernel, problem, out.data()));
      ASSERT_TRUE(apply_softmax(kernel, problem, scalar.data(), {2, SimdLevel::scalar}));
      ASSERT_EQ(out, scalar);
      for (std::size_t row = 0; row < static_cast<std::size_t>(problem.rows); ++row) {
        const auto expected = plain_softmax(kernel, problem, x.data() + row * columns);
        const std::vector<float> got(
            out.begin() + static_cast<std::ptrdiff_t>(row * columns),
            out.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns));
        ASSERT_EQ(got, expected) << kernel.name << ", shape " << shape << ", " << columns
                                 << " columns";
      }
    }
  }
}

TEST(Softmax, ByHand) {
  const std::vector<float> x{0, std::log(3.0F)};
  std::vector<float> out(2);
  SoftmaxProblem problem{.storage = softfloat::binary32, .rows = 1, .columns = 2, .x = x.data()};
  ASSERT_TRUE(apply_softmax(*find_softmax_kernel("control-softmax"), problem, out.data()));
  EXPECT_NEAR(out[0], 0.25, 1e-7);
  EXPECT_NEAR(out[1], 0.75, 1e-7);
  ASSERT_TRUE(apply_softmax(*find_softmax_kernel("control-log-softmax"), problem, out.data()));
  EXPECT_NEAR(out[0], std::log(0.25), 1e-6);
  EXPECT_NEAR(out[1], std::log(0.75), 1e-6);
}

TEST(Softmax, RowsWithoutAnyScoreAreNan) {
  const std::vector<float> x{-infinity, -infinity, 1, std::nanf("")};
  std::vector<float> out(4);
  const SoftmaxProblem problem{
      .storage = softfloat::bfloat16, .rows = 2, .columns = 2, .x = x.data()};
  for (const SoftmaxKernel& kernel : softmax_kernels()) {
    ASSERT_TRUE(apply_softmax(kernel, problem, out.data()));
    for (const float y : out) EXPECT_TRUE(std::isnan(y)) << kernel.name;
  }
}

// No softmax of a GPU is called bit-exact.
TEST(Softmax, GpuRowsAreBounded) {
  for (const SoftmaxKernel& kernel : softmax_kernels())
    EXPECT_EQ(softmax_exp(kernel, {}).bounded(), kernel.device == "GPU") << kernel.name;
}

TEST(Softmax, ExpModelCanBeReplaced) {
  Random random(13);
  const auto x = random.numbers(softfloat::binary32, 500);
  std::vector<float> plain(500), moved(500);
  SoftmaxProblem problem{.storage = softfloat::binary32, .rows = 5, .columns = 100, .x = x.data()};
  const SoftmaxKernel& kernel = *find_softmax_kernel("gpu-softmax");
  ASSERT_TRUE(apply_softmax(kernel, problem, plain.data()));
  problem.exp = ExpFunction(ExpModel::ex2_approx, {.ulp = 2, .seed = 3});
  EXPECT_TRUE(softmax_exp(kernel, problem).bounded());
  ASSERT_TRUE(apply_softmax(kernel, problem, moved.data()));
  EXPECT_NE(plain, moved);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(plain[i] / moved[i], 1, 2e-6);
}

}  // namespace
}  // namespace kvsim
