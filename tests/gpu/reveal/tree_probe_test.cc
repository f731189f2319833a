// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/tree_probe.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/reveal/order_fit.h"
#include "gpu/reveal/sum_classes.h"
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
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t terms;
  std::int64_t most_calls;
  std::string fitted = {};  ///< where a simpler order has the same tree
};

void reveal(const Case& row) {
  SCOPED_TRACE(row.operation + " " + row.order + " " + std::to_string(row.terms));
  auto backend = make_sim_backend("");
  ASSERT_TRUE(backend) << backend.error().message;
  ReductionShape shape{row.operation, row.input, row.rows, row.columns, row.terms};
  shape.attributes = {{"order", row.order}, {"product", "fused"}};
  if (row.input.precision < 8) shape.attributes["output"] = "bfloat16";
  auto reduction = make_reduction(**backend, shape);
  ASSERT_TRUE(reduction) << reduction.error().message;
  const auto classes = find_sum_classes(**reduction);
  ASSERT_TRUE(classes) << classes.error().message;
  ASSERT_EQ(classes->classes.size(), 1);
  const auto found = probe_tree(**reduction, classes->classes.front());
  ASSERT_TRUE(found) << found.error().message;
  const auto order = parse_order(row.order);
  ASSERT_TRUE(order) << order.error().message;
  const auto declared = build_sum_tree(*order, row.terms);
  ASSERT_TRUE(declared);
  EXPECT_EQ(to_string(found->tree), to_string(addition_tree(*declared)));
  EXPECT_LE(found->calls, row.most_calls);
  const auto fitted = fit_orders(found->tree, row.input);
  ASSERT_FALSE(fitted.empty());
  // What was fitted has the declared tree, and it is the simplest order that has.
  EXPECT_EQ(to_string(fitted.front()), row.fitted.empty() ? row.order : row.fitted);
}

TEST(TreeProbe, FindsTheTreeOfAnOrder) {
  using softfloat::bfloat16;
  using softfloat::binary16;
  using softfloat::binary32;
  reveal({"linear", "sequential", binary32, 1, 512, 512, 32});
  reveal({"linear", "blocks(192)", binary32, 4, 512, 500, 32});
  reveal({"linear", "lanes(4,1,join=halving,tail=scalar)", binary32, 2, 64, 259, 32 * 5});
  reveal(
      {"linear", "mma(h100.wgmma.bf16.f32)", bfloat16, 1, 512, 500, 128, "mma(h100.mma.bf16.f32)"});
  reveal({"linear", "split(4,multiple=64)/mma(a100.mma.f16.f32)", binary16, 1, 512, 512, 128,
          "blocks(128)/mma(t4.mma.f16.f32)"});
  reveal({"linear", "mma(b200.tcgen05.e4m3.f32)", softfloat::e4m3, 1, 512, 128, 600,
          "mma(h100.wgmma.e4m3.f32)"});
  reveal({"linear", "exact", binary32, 1, 64, 64, 32});
  reveal({"linear", "exact", bfloat16, 1, 300, 300, 32});
  reveal({"linear", "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)", bfloat16, 1, 700, 700, 128});
  reveal({"dot", "lanes(16,4,join=halving,tail=scalar)", binary32, 1, 1, 200, 3000});
  reveal({"sum", "torch-cascade(8)", binary32, 1, 32, 300, 32 * 10});
  reveal({"sum", "numpy-pairwise", binary32, 1, 1, 300, 5000});
}

}  // namespace
}  // namespace kvsim::gpu
