// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/random_weights.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

std::vector<float> fill(const RandomWeights& weights, std::int64_t first, std::size_t count,
                        const EngineOptions& options) {
  std::vector<float> out(count);
  const auto done = fill_random_weights(weights, first, out, options);
  EXPECT_TRUE(done) << done.error().message;
  return out;
}

// By the definition, on softfloat.
float by_definition(const RandomWeights& weights, std::uint64_t i, double deviation) {
  std::uint32_t word = philox_block(weights.seed, weights.stream, i / 4)[i % 4];
  int sum = -510;
  for (int byte = 0; byte < 4; ++byte, word /= 256) sum += static_cast<int>(word % 256);
  const auto factor = static_cast<float>(deviation / std::sqrt(4 * (256.0 * 256 - 1) / 12));
  const float product = static_cast<float>(sum) * factor;
  const softfloat::Bits bits = std::bit_cast<std::uint32_t>(product);
  const softfloat::Bits code = softfloat::convert(weights.storage, softfloat::binary32, bits).bits;
  return std::bit_cast<float>(static_cast<std::uint32_t>(
      softfloat::convert(softfloat::binary32, weights.storage, code).bits));
}

TEST(RandomWeights, FollowTheDefinitionAtEveryLevel) {
  // From block 2^32 − 20 on, the counter's low word overflows on the way.
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{40}, std::int64_t{4} * 0xffffffec}) {
    for (const softfloat::Format& storage :
         {softfloat::binary16, softfloat::bfloat16, softfloat::binary32}) {
      const RandomWeights weights{0x123456789abcdefULL, 0x8000000300000007ULL, storage, 0.0221F};
      for (const SimdLevel level : list_simd_levels()) {
        const auto out = fill(weights, first, 1003, {.threads = 1, .level = level});
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(out[i], by_definition(weights, static_cast<std::uint64_t>(first) + i, 0.0221F))
              << i << " at " << simd_level_name(level);
        }
      }
    }
  }
}

TEST(RandomWeights, ThreadsAndPiecesChangeNothing) {
  const RandomWeights weights{7, 11, softfloat::bfloat16, 1};
  const auto whole = fill(weights, 0, 100'000, {});
  EXPECT_EQ(fill(weights, 0, 100'000, {.threads = 3}), whole);
  const auto piece = fill(weights, 50'000, 50'000, {.threads = 2});
  EXPECT_EQ(std::vector<float>(whole.begin() + 50'000, whole.end()), piece);
  std::vector<float> out(4);
  EXPECT_FALSE(fill_random_weights(weights, 2, out));
}

// Mean and deviation of 100,000 numbers: 4 standard errors are 0.0127 and 0.0083.
TEST(RandomWeights, HaveTheDeviation) {
  const auto out = fill({3, 5, softfloat::binary32, 2}, 0, 100'000, {});
  double sum = 0;
  double squares = 0;
  float largest = 0;
  for (const float x : out) {
    sum += x;
    squares += static_cast<double>(x) * x;
    largest = std::max(largest, std::fabs(x));
  }
  EXPECT_NEAR(sum / 1e5, 0, 2 * 0.0127);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 2, 2 * 0.0083);
  EXPECT_LT(largest, 2 * 3.46F);
  EXPECT_GT(largest, 2 * 3.0F);
}

}  // namespace
}  // namespace kvsim
