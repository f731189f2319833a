// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/softfloat/text_round_trip.h"

#include <gtest/gtest.h>

namespace kvsim::softfloat {
namespace {

TEST(TextRoundTrip, EveryCodeOfEveryFormatUpTo8Bits) {
  int checked = 0;
  for (const NamedFormat& row : formats()) {
    if (row.format.width() > 8) continue;
    check_every_code(row);
    if (testing::Test::HasFatalFailure()) return;
    ++checked;
  }
  EXPECT_EQ(checked, 8);
}

TEST(TextRoundTrip, EveryBinary16) { check_every_code(*find_format("binary16")); }
TEST(TextRoundTrip, EveryBfloat16) { check_every_code(*find_format("bfloat16")); }

}  // namespace
}  // namespace kvsim::softfloat
