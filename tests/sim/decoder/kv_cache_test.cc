// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sim/decoder/codes.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;

TEST(KvCache, KeepsWhatIsWrittenWhileItGrows) {
  for (const softfloat::Format& format :
       {bfloat16, binary16, softfloat::binary32, softfloat::e4m3, softfloat::binary64}) {
    KvCache cache(2, 3, 4, format);
    for (std::int64_t row = 0; row < 200; ++row) {
      cache.extend(row + 1);
      for (const std::int64_t layer : {0, 1}) {
        std::vector<double> values;
        for (int i = 0; i < 12; ++i) {
          values.push_back(static_cast<double>((row * 12 + i + layer) % 15) * 0.5 - 3);
        }
        cache.write(layer, KvPart::key, row, std::span<const double>(values));
        for (double& x : values) x = -x;
        cache.write(layer, KvPart::value, row, std::span<const double>(values));
      }
    }
    const std::vector<float> keys = cache.read(1, KvPart::key, 70, 2);
    const std::vector<double> values = cache.read_double(0, KvPart::value, 199, 1);
    for (std::int64_t head = 0; head < 3; ++head) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const auto at = static_cast<std::size_t>((head * 2 + 1) * 4 + i);
        EXPECT_EQ(keys[at], static_cast<float>((71 * 12 + head * 4 + i + 1) % 15) * 0.5F - 3);
        EXPECT_EQ(values[static_cast<std::size_t>(head * 4 + i)],
                  3 - static_cast<double>((199 * 12 + head * 4 + i) % 15) * 0.5);
      }
    }
    cache.truncate(100);
    EXPECT_EQ(cache.rows(), 100);
    cache.extend(101);
    EXPECT_EQ(cache.read(0, KvPart::key, 100, 1), std::vector<float>(12));
    EXPECT_EQ(cache.read(1, KvPart::key, 70, 2), keys);
  }
}

TEST(KvCache, DigestsAreThoseOfTheNumbersAsFloats) {
  // printf of 1.0, -2.0, NaN, 0.5 as little-endian floats through sha256sum.
  for (const softfloat::Format& format : {bfloat16, binary16, softfloat::binary32}) {
    KvCache cache(1, 1, 4, format);
    cache.extend(2);
    const std::vector<float> row{1, -2, -std::numeric_limits<float>::quiet_NaN(), 0.5F};
    cache.write(0, KvPart::key, 1, std::span<const float>(row));
    EXPECT_EQ(cache.digest(0, KvPart::key, 0, 1), "c1fa6ce4dc88fdf0");
    EXPECT_EQ(cache.digest(0, KvPart::key, 0, 0), cache.digest(0, KvPart::value, 0, 1));
  }
}

TEST(KvCache, CodesAreThoseOfTheFormats) {
  for (const softfloat::Format& format : {bfloat16, binary16}) {
    for (std::uint32_t code = 0; code < 65536; ++code) {
      const float ours = decoder::code_to_float(format, static_cast<std::uint16_t>(code));
      const double exact = softfloat::to_double(format, code);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(ours)) << code;
        continue;
      }
      ASSERT_EQ(static_cast<double>(ours), exact) << code;
      ASSERT_EQ(decoder::float_to_code(format, ours), code);
    }
  }
}

}  // namespace
}  // namespace kvsim
