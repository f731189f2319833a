// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// How many calls of an operator its tree takes.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/sum_classes.h"
#include "gpu/reveal/tree_probe.h"
#include "gpu/sim_backend.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

struct Case {
  std::string operation;
  std::string order;
  softfloat::Format input;
  std::int64_t columns;
  std::int64_t terms;
};

/// Calls for the tree, which must be that of the order.
std::int64_t calls_for_tree(const Case& row) {
  auto backend = make_sim_backend("");
  EXPECT_TRUE(backend);
  ReductionShape shape{row.operation, row.input, 1, row.columns, row.terms};
  shape.attributes = {{"order", row.order}, {"product", "fused"}};
  auto reduction = make_reduction(**backend, shape);
  EXPECT_TRUE(reduction);
  const auto classes = find_sum_classes(**reduction);
  EXPECT_TRUE(classes);
  const auto found = probe_tree(**reduction, classes->classes.front());
  EXPECT_TRUE(found) << found.error().message;
  const auto declared = build_sum_tree(*parse_order(row.order), row.terms);
  EXPECT_TRUE(declared);
  EXPECT_TRUE(found->tree == addition_tree(*declared)) << row.order;
  ::testing::Test::RecordProperty(row.operation + " " + row.order + " " + std::to_string(row.terms),
                                  std::to_string(found->calls));
  return found->calls;
}

TEST(CallCount, IsAtMost32ForAWideBinary32Product) {
  for (const char* order : {"sequential", "pairwise", "mma(h100.wgmma.tf32.f32)"}) {
    EXPECT_LE(calls_for_tree({"linear", order, softfloat::binary32, 4096, 4096}), 32) << order;
  }
}

TEST(CallCount, GrowsWithTermsOverColumns) {
  for (const char* order : {"sequential", "lanes(8,2,join=halving)"}) {
    EXPECT_LE(calls_for_tree({"linear", order, softfloat::binary32, 512, 4096}), 32 * 8) << order;
  }
}

TEST(CallCount, IsAtMostFourTimesThatForANarrowOutput) {
  for (const char* order : {"mma(a100.mma.bf16.f32)", "sequential"}) {
    EXPECT_LE(calls_for_tree({"linear", order, softfloat::bfloat16, 4096, 4096}), 128) << order;
  }
}

TEST(CallCount, IsAboutTermsTimesLevelsForOneOutput) {
  for (const char* order : {"sequential", "pairwise", "lanes(16,4,join=halving)", "reverse"}) {
    for (const std::int64_t n : {100, 1000}) {
      const double levels = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(n - 1)));
      EXPECT_LE(static_cast<double>(calls_for_tree({"dot", order, softfloat::binary32, 1, n})),
                2 * static_cast<double>(n) * levels)
          << order;
    }
  }
}

}  // namespace
}  // namespace kvsim::gpu
