// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// A few of the layers of plain_equality_test.cc, small ones, for every compiler and the sanitizers.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/sim/attention/plain/kernels.h"
#include "tests/sim/attention/plain_compare.h"

namespace kvsim {
namespace {

TEST(PlainFewShapes, BothVersionsAgree) {
  std::uint64_t stream = 500;
  for (const plain::Kernel& kernel : plain::kernels()) {
    plain::Limits limits = kernel.limits;
    limits.longest = 280;
    limits.products = 10'000;
    ++stream;
    for (std::uint64_t index = 0; index < 6; ++index) {
      const plain::Problem p = random_problem(limits, stream, index);
      EXPECT_EQ(test::compare(kernel, p), "") << kernel.name << ": " << test::describe(p);
    }
  }
}

}  // namespace
}  // namespace kvsim
