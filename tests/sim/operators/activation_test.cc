// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/operators/residual.h"
#include "sim/sleef.h"
#include "softfloat/formats.h"
#include "tests/sim/exp_plain.h"
#include "tests/sim/operators/plain.h"

namespace kvsim {
namespace {

using oracle::Number;
using oracle::Random;

/// Element i of n, straight from the rules.
Number plain_activation(const ActivationKernel& kernel, Number x, std::size_t i, std::size_t n) {
  switch (kernel.function) {
    case ActivationFunction::silu: {
      if (!kernel.name.starts_with("torch-cpu")) {
        return x / (Number(1) + oracle::by_mpfr(mpfr_exp, -x));
      }
      // Two vectors at a time by SLEEF, the rest by the C library.
      const std::size_t group = kernel.name == "torch-cpu-silu" ? 32 : 16;
      const Number e = i < n / group * group ? oracle::plain_sleef_u10((-x).value())
                                             : oracle::plain_libm_expf((-x).value());
      return x / (Number(1) + e);
    }
    case ActivationFunction::gelu:
      return x * Number(0.5F) * (Number(1) + oracle::by_mpfr(mpfr_erf, x * Number(0.70710678F)));
    case ActivationFunction::gelu_tanh:
      break;
  }
  const Number cube = x * x * x;
  const Number inner =
      kernel.fused ? oracle::fma(Number(0.044715F), cube, x) : x + Number(0.044715F) * cube;
  const Number argument = Number(0.7978845608F) * inner;
  const Number tanh = kernel.name == "torch-cpu-gelu-tanh"
                          ? Number(sleef_tanh_u10(argument.value()))  // its own test has vectors
                          : oracle::by_mpfr(mpfr_tanh, argument);
  return Number(0.5F) * x * (Number(1) + tanh);
}

TEST(Activation, EqualsThePlainVersion) {
  for (const ActivationKernel& kernel : activation_kernels()) {
    Random random(15);
    for (int shape = 0; shape < 100; ++shape) {
      const softfloat::Format storage = random.storage();
      const auto count = static_cast<std::size_t>(random.integer(0, 150));
      std::vector<float> x = random.numbers(storage, count, shape % 2 == 0 ? 1 : 6);
      if (count > 2) x[1] = -std::numeric_limits<float>::infinity();
      std::vector<float> out(count), scalar(count);
      ASSERT_TRUE(apply_activation(kernel, storage, x, out));
      ASSERT_TRUE(apply_activation(kernel, storage, x, scalar, {}, {1, SimdLevel::scalar}));
      for (std::size_t i = 0; i < count; ++i) {
        const Number expected = plain_activation(kernel, x[i], i, count).rounded(storage);
        ASSERT_EQ(Number(out[i]).bits, expected.bits)
            << kernel.name << " of " << x[i] << ", element " << i << " of " << count;
        ASSERT_EQ(Number(scalar[i]).bits, expected.bits);
      }
    }
  }
}

TEST(Activation, ByHand) {
  const std::vector<float> x{0, 1, -1, 100};
  std::vector<float> out(4);
  const auto apply = [&](std::string_view name) {
    ASSERT_TRUE(apply_activation(*find_activation_kernel(name), softfloat::binary32, x, out));
  };
  apply("control-silu");
  EXPECT_NEAR(out[1], 0.7310586, 1e-7);  // 1/(1 + 1/e)
  EXPECT_NEAR(out[2], -0.2689414, 1e-7);
  apply("control-gelu");
  EXPECT_NEAR(out[1], 0.8413447, 1e-7);  // Φ(1)
  EXPECT_NEAR(out[2], -0.1586553, 1e-7);
  apply("control-gelu-tanh");
  EXPECT_NEAR(out[1], 0.8411920, 1e-7);
  for (const float y : {out[0], out[3] - 100}) EXPECT_EQ(y, 0.0F);
  EXPECT_FALSE(apply_activation(*find_activation_kernel("control-silu"), softfloat::binary32, x,
                                std::span(out).first(3)));
}

TEST(Activation, ExpModelCanBeReplaced) {
  Random random(16);
  const std::vector<float> x = random.numbers(softfloat::binary32, 320);
  std::vector<float> plain(320), other(320);
  const ActivationKernel& kernel = *find_activation_kernel("control-silu");
  ASSERT_TRUE(apply_activation(kernel, softfloat::binary32, x, plain));
  ASSERT_TRUE(apply_activation(kernel, softfloat::binary32, x, other,
                               ExpFunction(ExpModel::torch_exp_u20)));
  EXPECT_NE(plain, other);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(other[i], plain[i], 1e-6);
}

TEST(Residual, SumsAndProductsAreRoundedOnceFromBinary32) {
  Random random(17);
  for (int shape = 0; shape < 100; ++shape) {
    const softfloat::Format storage = random.storage();
    const auto count = static_cast<std::size_t>(random.integer(0, 70));
    const std::vector<float> x = random.numbers(storage, count, 4);
    const std::vector<float> y = random.numbers(storage, count);
    std::vector<float> sum(count), stream(count), product = y;
    ASSERT_TRUE(add_residual(*find_residual_kernel("storage-residual"), storage, x, y, sum));
    ASSERT_TRUE(add_residual(*find_residual_kernel("float32-residual"), storage, x, y, stream));
    ASSERT_TRUE(multiply_elements(storage, x, product, product));
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(stream[i], (Number(x[i]) + Number(y[i])).value());
      EXPECT_EQ(sum[i], (Number(x[i]) + Number(y[i])).rounded(storage).value());
      EXPECT_EQ(product[i], (Number(x[i]) * Number(y[i])).rounded(storage).value());
    }
  }
  std::vector<float> out(2);
  const std::vector<float> x(2), y(3);
  const auto refused = multiply_elements(softfloat::binary16, x, y, out);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("2 and 3 elements give 2"), std::string::npos);
}

}  // namespace
}  // namespace kvsim
