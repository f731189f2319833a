// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/weight_values.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

// Every code against softfloat, alone and through the loop over a tensor's bytes.
void check_every_code(Dtype dtype, const softfloat::Format& format,
                      float (*to_float)(std::uint16_t)) {
  std::string codes = "x";  // so that no element is aligned
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    codes += test::eight_bytes(code).substr(0, 2);
  }
  std::vector<float> all(0x10000);
  const std::size_t first_bad = convert_weights(dtype, test::bytes_of(codes).subspan(1), all);
  std::size_t expected_bad = all.size();
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const float expected = softfloat::to_float(format, code);
    const float single = to_float(static_cast<std::uint16_t>(code));
    if (!std::isfinite(expected) && expected_bad == all.size()) expected_bad = code;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(single) && std::isnan(all[code])) << code;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(single), std::bit_cast<std::uint32_t>(expected)) << code;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(all[code]), std::bit_cast<std::uint32_t>(expected))
        << code;
  }
  EXPECT_EQ(first_bad, expected_bad);
}

TEST(WeightValues, EveryBfloat16Code) {
  check_every_code(Dtype::bf16, softfloat::bfloat16, bfloat16_to_float);
}

TEST(WeightValues, EveryBinary16Code) {
  check_every_code(Dtype::f16, softfloat::binary16, binary16_to_float);
}

TEST(WeightValues, Binary32StaysAsItIs) {
  std::string codes = "x";
  std::vector<std::uint32_t> bits = {0,          0x80000000, 1,          0x007FFFFF,
                                     0x3F800001, 0xFF7FFFFF, 0x7F7FFFFF, 0x12345678};
  for (const std::uint32_t code : bits) codes += test::eight_bytes(code).substr(0, 4);
  std::vector<float> out(bits.size());
  EXPECT_EQ(convert_weights(Dtype::f32, test::bytes_of(codes).subspan(1), out), out.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), bits[i]);
  }
  for (const std::uint32_t bad : {0x7F800000U, 0xFF800000U, 0x7FC00000U, 0xFF800001U}) {
    const std::string last = codes + test::eight_bytes(bad).substr(0, 4);
    out.resize(bits.size() + 1);
    EXPECT_EQ(convert_weights(Dtype::f32, test::bytes_of(last).subspan(1), out), bits.size());
  }
}

TEST(WeightValues, DtypesOfWeights) {
  int accepted = 0;
  for (const DtypeInfo& row : dtypes()) accepted += is_weight_dtype(row.dtype) ? 1 : 0;
  EXPECT_EQ(accepted, 3);
}

}  // namespace
}  // namespace kvsim
