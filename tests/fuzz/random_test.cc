// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fuzz/flip/ranges.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

// Moments and tails of the normal distribution: 1/2, 0.158655 beyond 1, 0.022750 beyond 2.
TEST(FuzzRandom, GaussiansAreNormal) {
  Random random({3, 4, 5});
  std::vector<float> x(200'000);
  random.gaussians(x);
  EXPECT_EQ(random.position(), 5 + x.size() / 4);
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double beyond_1 = 0;
  double beyond_2 = 0;
  for (const float each : x) {
    const double value = each;
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
    beyond_1 += value > 1 ? 1 : 0;
    beyond_2 += value < -2 ? 1 : 0;
  }
  const auto n = static_cast<double>(x.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.015);
  EXPECT_NEAR(fourth / n, 3, 0.1);
  EXPECT_NEAR(beyond_1 / n, 0.158655, 0.003);
  EXPECT_NEAR(beyond_2 / n, 0.022750, 0.0015);
  EXPECT_GT(*std::ranges::max_element(x), 3.5F);
  EXPECT_LT(*std::ranges::max_element(x), 3.9F);
}

// The oracle is softfloat, one conversion for each number.
TEST(ValueFitter, RoundsAsSoftfloatDoes) {
  for (const softfloat::Format& format :
       {softfloat::binary16, softfloat::bfloat16, softfloat::binary32, softfloat::e4m3}) {
    const ValueFitter fitter(format);
    Random random({7, 8, 0});
    for (int i = 0; i < 20'000; ++i) {
      const int exponent = static_cast<int>(random.between(format.emin() - 2, 6));
      double x = std::ldexp(1 + random.unit(), exponent);
      // Ties, and numbers next to them.
      if (i % 3 == 0)
        x = std::ldexp(1 + std::ldexp(2.0 * std::floor(random.unit() * 4) + 1, -format.precision),
                       exponent);
      if (i % 3 == 1) x = std::ldexp(2 - std::ldexp(random.unit(), 1 - format.precision), exponent);
      if (random.once_in(2)) x = -x;
      const double largest = fitter.largest(CaseTensor::q);
      const double clamped = std::clamp(x, -largest, largest);
      const double expected = softfloat::to_double(
          format,
          softfloat::convert(format, softfloat::binary64, softfloat::from_double(clamped)).bits);
      const double kept = std::abs(expected) < std::ldexp(1.0, format.emin()) ? 0 : expected;
      EXPECT_EQ(fitter.fit(CaseTensor::q, x), kept) << x;
    }
  }
  EXPECT_EQ(ValueFitter(softfloat::binary16).fit(CaseTensor::q, std::nan("")), 0);
}

}  // namespace
}  // namespace kvsim::fuzz
