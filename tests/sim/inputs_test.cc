// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/inputs.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/normal_quantile.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

// The quantile in long double: 64 bits or more of precision on the hosts that this project knows.
static_assert(std::numeric_limits<long double>::digits >= 64);
long double exact_quantile(double p) {
  return quantile(boost::math::normal_distribution<long double>(), static_cast<long double>(p));
}

TEST(Inputs, LogarithmAgainstMpfr) {
  mpfr_t exact;
  mpfr_init2(exact, 200);
  double worst = 0;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    // Uniform in (0, 1), and every other one close to 1, where the logarithm is small.
    double x = uniform(1, 1, i);
    if (i % 2 == 1) x = 1 + (x - 0.5) * std::ldexp(1.0, -static_cast<int>(i % 40));
    mpfr_set_d(exact, x, MPFR_RNDN);
    mpfr_log(exact, exact, MPFR_RNDN);
    const double nearest = mpfr_get_d(exact, MPFR_RNDN);
    if (nearest == 0) continue;
    mpfr_d_sub(exact, log_positive(x), exact, MPFR_RNDN);
    const double ulp = std::ldexp(1.0, std::ilogb(nearest) - 52);
    worst = std::max(worst, std::fabs(mpfr_get_d(exact, MPFR_RNDN)) / ulp);
  }
  mpfr_clear(exact);
  EXPECT_LE(worst, 2.0);
  EXPECT_GE(worst, 0.5);
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(log_positive(1.0), 0.0);
}

TEST(Inputs, QuantileAgainstBoost) {
  double worst = 0;
  const auto check = [&](double p) {
    const long double exact = exact_quantile(p);
    if (exact == 0) {
      EXPECT_EQ(normal_quantile(p), 0.0);
      return;
    }
    worst = std::max(worst, static_cast<double>(std::fabs((normal_quantile(p) - exact) / exact)));
  };
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    check(uniform(1, 2, i));
    check(std::ldexp(uniform(1, 3, i), -static_cast<int>(i % 50)));
  }
  // Both sides of the borders between the three approximations, the ends, and the middle.
  for (const double p : {0.075, 0.0749999, 0.0750001, 0.925, 0.9250001, 0x1p-53, 1 - 0x1p-53,
                         1.3887943864964e-11, 1.38879438649e-11, 0.5, 0.5 + 0x1p-53}) {
    check(p);
  }
  RecordProperty("worst_relative_error", std::to_string(worst * 1e15) + "e-15");
  EXPECT_LE(worst, 2e-15);
  EXPECT_GE(worst, 1e-17);
}

TEST(Inputs, UniformNumbersAreOddMultiplesOfTheirUnit) {
  double lowest = 1, highest = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = uniform(3, 4, i);
    const double scaled = x * 0x1p53;
    ASSERT_EQ(std::fmod(scaled, 2), 1);
    lowest = std::min(lowest, x);
    highest = std::max(highest, x);
  }
  EXPECT_GT(lowest, 0);
  EXPECT_LT(lowest, 1e-4);
  EXPECT_LT(highest, 1);
  EXPECT_GT(highest, 1 - 1e-4);
  // From the Random123 answer for counter and key 0: e169c58d 6627e8d5, cut to 52 bits, plus ½.
  EXPECT_EQ(uniform(0, 0, 0), (0xe169c58d6627ep0 + 0.5) * 0x1p-52);
}

// Kolmogorov–Smirnov: n·(largest distance of distribution functions) stays below the 0.1 % point.
TEST(Inputs, NormalSampleIsNormal) {
  constexpr std::size_t n = 100'000;
  std::vector<double> sample(n);
  for (std::size_t i = 0; i < n; ++i) sample[i] = normal(11, 12, i);
  std::array<double, 5> moments{};
  for (const double x : sample) {
    double power = 1;
    for (double& moment : moments) {
      moment += power / n;
      power *= x;
    }
  }
  // Five standard deviations of each sample moment: variances 1, 2, 15, 96 over n.
  EXPECT_NEAR(moments[1], 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96.0 / n));
  std::sort(sample.begin(), sample.end());
  double distance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double f = 0.5 * std::erfc(-sample[i] / std::sqrt(2.0));
    const double below = static_cast<double>(i) / n;
    distance = std::max({distance, std::fabs(f - below), std::fabs(f - below - 1.0 / n)});
  }
  EXPECT_LT(distance * std::sqrt(static_cast<double>(n)), 1.95);
}

// The first 4096 numbers of a stream against an independent computation: Boost's quantile of the
// Philox bits in long double.
TEST(Inputs, NormalNumbersEqualAnIndependentComputation) {
  for (std::uint64_t i = 0; i < 4096; ++i) {
    const auto exact = static_cast<double>(exact_quantile(uniform(0, 1, i)));
    ASSERT_NEAR(normal(0, 1, i), exact, 2e-15 * std::max(1.0, std::fabs(exact))) << i;
  }
}

// FNV-1a over the bits of these numbers. It proves sameness between compilers and machines, not
// correctness (the tests above do). To remake it after a deliberate change, copy the printed value.
TEST(Inputs, NormalNumbersHaveTheSameBitsEverywhere) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (std::uint64_t i = 0; i < 4096; ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(normal(0, 1, i));
    for (int byte = 0; byte < 8; ++byte) {
      digest = (digest ^ ((bits >> (8 * byte)) & 0xff)) * 0x100000001b3;
    }
  }
  EXPECT_EQ(digest, 0x1143ebb2cc7cbfd8U) << std::hex << digest;
}

TEST(Inputs, ElementsAreRoundedOnceAndAddressedAlone) {
  const AttentionShape shape{4, 2, 3, 7, 5};
  const auto inputs = generate_attention(InputKind::gaussian, 42, shape, softfloat::binary32);
  EXPECT_EQ(inputs.shape, shape);
  EXPECT_EQ(inputs.format, softfloat::binary32);
  ASSERT_EQ(inputs.q.size(), 4U * 3 * 5);
  ASSERT_EQ(inputs.k.size(), 2U * 7 * 5);
  ASSERT_EQ(inputs.v.size(), 2U * 7 * 5);
  // Element (head 1, position 2, channel 3) of each tensor, by its address; host conversion double
  // → float rounds to nearest even.
  constexpr std::uint64_t index = (std::uint64_t{2} << 32) | 3;
  const auto expected = [](std::uint64_t tensor) {
    const std::uint64_t stream = (tensor << 32) | 1;
    return softfloat::from_float(static_cast<float>(normal(42, stream, index)));
  };
  EXPECT_EQ(inputs.q[(1 * 3 + 2) * 5 + 3], expected(1));
  EXPECT_EQ(inputs.k[(1 * 7 + 2) * 5 + 3], expected(2));
  EXPECT_EQ(inputs.v[(1 * 7 + 2) * 5 + 3], expected(3));

  AttentionShape longer = shape;
  longer.kv_len = 20;
  for (const InputKind kind : {InputKind::gaussian, InputKind::outliers}) {
    const auto a = generate_attention(kind, 42, shape, softfloat::binary16);
    const auto b = generate_attention(kind, 42, longer, softfloat::binary16);
    EXPECT_EQ(a.q, b.q);
    EXPECT_TRUE(std::equal(a.k.begin(), a.k.begin() + 35, b.k.begin()));
    EXPECT_TRUE(std::equal(a.v.begin() + 35, a.v.end(), b.v.begin() + 100));
    EXPECT_NE(a.k, generate_attention(kind, 43, shape, softfloat::binary16).k);
  }
}

TEST(Inputs, OutlierChannelsAreFewAndLarge) {
  const AttentionShape shape{2, 2, 1, 400, 128};
  const auto plain = generate_attention(InputKind::gaussian, 5, shape, softfloat::binary16);
  const auto outliers = generate_attention(InputKind::outliers, 5, shape, softfloat::binary16);
  EXPECT_EQ(plain.q, outliers.q);
  EXPECT_EQ(plain.v, outliers.v);
  for (std::int64_t head = 0; head < 2; ++head) {
    const std::vector<std::int64_t> channels = outlier_channels(5, head, 128);
    EXPECT_EQ(channels.size(), 4U);
    EXPECT_TRUE(std::is_sorted(channels.begin(), channels.end()));
    for (std::int64_t channel = 0; channel < 128; ++channel) {
      double sum = 0, squares = 0;
      std::int64_t changed = 0;
      for (std::int64_t position = 0; position < 400; ++position) {
        const auto i = static_cast<std::size_t>((head * 400 + position) * 128 + channel);
        const double x = softfloat::to_double(softfloat::binary16, outliers.k[i]);
        sum += x;
        squares += x * x;
        changed += plain.k[i] != outliers.k[i] ? 1 : 0;
      }
      const double mean = sum / 400;
      const double deviation = std::sqrt(squares / 400 - mean * mean);
      if (std::binary_search(channels.begin(), channels.end(), channel)) {
        EXPECT_GT(std::fabs(mean), 3.6);
        EXPECT_LT(std::fabs(mean), 12.4);
        EXPECT_NEAR(deviation, 1.5, 0.3);
      } else {
        EXPECT_EQ(changed, 0);
        EXPECT_NEAR(mean, 0, 0.25);
      }
    }
  }
  EXPECT_NE(outlier_channels(5, 0, 128), outlier_channels(5, 1, 128));
  EXPECT_EQ(outlier_channels(5, 0, 1), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace kvsim
