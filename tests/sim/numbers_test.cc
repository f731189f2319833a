// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Numbers stored as 16-bit codes (sim/engine/numbers.h, panel.h) against softfloat.

#include "sim/engine/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "sim/engine/panel.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Format;

std::vector<std::uint16_t> every_code() {
  std::vector<std::uint16_t> codes(0x10000);
  std::iota(codes.begin(), codes.end(), std::uint16_t{0});
  return codes;
}

/// A NaN may come out with another payload.
void expect_same(const Format& format, std::uint16_t code, float got) {
  const float expected = softfloat::to_float(format, code);
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << code;
  } else {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(expected)) << code;
  }
}

TEST(NumberPointer, ReadsEveryCode) {
  const std::vector<std::uint16_t> codes = every_code();
  for (const Format& format : {softfloat::bfloat16, softfloat::binary16}) {
    const NumberPointer numbers = *NumberPointer::of(format, codes.data());
    EXPECT_EQ(numbers.floats(), nullptr);
    EXPECT_EQ(numbers.bytes(), 2);
    for (const std::uint16_t code : codes) expect_same(format, code, numbers[code]);
    const NumberPointer later = numbers + 0x3c00;
    expect_same(format, 0x3c05, later[5]);
  }
  EXPECT_FALSE(NumberPointer::of(softfloat::e4m3, codes.data()));
}

TEST(NumberPointer, IsAFloatPointer) {
  const std::vector<float> floats{1.0F, 2.0F, 3.0F};
  const NumberPointer numbers = floats.data();
  EXPECT_EQ((numbers + 1).floats(), floats.data() + 1);
  EXPECT_EQ(numbers[2], 3.0F);
  EXPECT_EQ(numbers.codes(), nullptr);
  EXPECT_TRUE(NumberPointer().is_null());
}

TEST(Panel, ReadsEveryCodeAtEveryLevel) {
  const std::vector<std::uint16_t> codes = every_code();
  std::vector<float> out(codes.size() + 1, -7.0F);
  for (const SimdLevel level : list_simd_levels()) {
    for (const Format& format : {softfloat::bfloat16, softfloat::binary16}) {
      // From an odd address, with a last vector that is not full.
      engine::read_numbers(*NumberPointer::of(format, codes.data() + 1), 0xfffb, out.data(), level);
      for (std::uint32_t i = 0; i < 0xfffb; ++i) {
        ASSERT_NO_FATAL_FAILURE(expect_same(format, static_cast<std::uint16_t>(i + 1), out[i]));
      }
      EXPECT_EQ(out[0xfffb], -7.0F);
    }
  }
}

TEST(Panel, CopiesEveryPartOfAMatrix) {
  constexpr std::int64_t rows = 41, columns = 37, stride = 45;
  std::vector<std::uint16_t> codes(stride * stride);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint16_t>(0x3000 + i);  // all different
  }
  std::vector<float> floats;
  for (const std::uint16_t code : codes) floats.push_back(binary16_number(code));
  constexpr std::int64_t to_stride = 40;
  for (const SimdLevel level : list_simd_levels()) {
    for (const bool transposed : {false, true}) {
      for (const bool as_codes : {false, true}) {
        for (const std::int64_t first : {0, 3}) {
          const engine::PanelSource part{
              .numbers = as_codes ? NumberPointer(NumberCode::binary16, codes.data())
                                  : NumberPointer(floats.data()),
              .stride = stride,
              .transposed = transposed,
              .first_row = first,
              .rows = rows - first,
              .first_column = first / 2,
              .columns = columns - first};
          std::vector<float> out(rows * to_stride, -7.0F);
          engine::copy_panel(part, out.data(), to_stride, level);
          for (std::int64_t k = 0; k < rows; ++k) {
            for (std::int64_t j = 0; j < to_stride; ++j) {
              const bool inside = k < part.rows && j < part.columns;
              const std::int64_t row = part.first_row + k, column = part.first_column + j;
              const std::int64_t at = transposed ? column * stride + row : row * stride + column;
              ASSERT_EQ(out[static_cast<std::size_t>(k * to_stride + j)],
                        inside ? floats[static_cast<std::size_t>(at)] : -7.0F)
                  << k << ", " << j << " at " << simd_level_name(level);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvsim
