// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include "tests/softfloat/text_round_trip.h"

namespace kvsim::softfloat {
namespace {

TEST(TextRoundTrip, EveryTf32) { check_every_code(*find_format("tf32")); }
TEST(TextRoundTrip, EveryE8m13) { check_every_code(*find_format("e8m13")); }

}  // namespace
}  // namespace kvsim::softfloat
