// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Every attention kernel of the table, seen through the interface of back ends: direction, block,
// splits, rescale rule and the tree of P·V must be what the row declares.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/sim_backend.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/attention/splits.h"
#include "sim/attention/value_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// What of a row does not show, and why.
struct Exception {
  std::string_view kernel;
  std::string_view format;  ///< empty: all
  bool blocks = false;      ///< direction, block and rescale rule are not seen
  bool tree = false;        ///< the tree is not seen
  std::string_view reason;
};
constexpr Exception exceptions[] = {
    {"llama.cpp-cuda", "", true, false,
     "its maximum is 3 ln 2 above the scores: with p = 1/8 two values do not overflow, and its "
     "rescale factor is rounded to binary16 as p is"},
    {"llama.cpp-cuda", "bfloat16", false, true,
     "it converts values to binary16, where the masks of bfloat16 are infinite"},
};

bool excepted(const AttentionKernel& kernel, std::string_view format, bool Exception::* what) {
  return std::ranges::any_of(exceptions, [&](const Exception& one) {
    return one.kernel == kernel.name && (one.format.empty() || one.format == format) && one.*what;
  });
}

/// What a row declares for one layer.
struct Declared {
  KeyDirection direction = KeyDirection::not_seen;
  std::int64_t block = 0;
  std::int64_t splits = 1;
  RescaleRule rescale = RescaleRule::not_seen;
};

Declared declared(const AttentionKernel& kernel, const AttentionProblem& problem) {
  switch (kernel.family) {
    case AttentionFamily::online_tiles: {
      const SplitPlan plan = plan_splits(kernel, problem.shape, problem.mask, problem.launch);
      Declared expected{.direction = kernel.tiles->last_to_first ? KeyDirection::last_to_first
                                                                 : KeyDirection::first_to_last,
                        .block = plan.block_columns,
                        .splits = 0,
                        .rescale = kernel.tiles->rescale_threshold > 0 ? RescaleRule::beyond_rise
                                                                       : RescaleRule::every_rise};
      for (std::int64_t split = 0; split < plan.splits; ++split) {
        const bool empty = split_keys(plan, problem.shape, problem.mask, 0, split).empty();
        expected.splits += empty ? 0 : 1;
      }
      return expected;
    }
    case AttentionFamily::torch_cpu:
      return {KeyDirection::first_to_last, 512, 1, RescaleRule::every_rise};
    case AttentionFamily::llama_cpu:
      return {KeyDirection::first_to_last, 1, 1, RescaleRule::every_rise};
    case AttentionFamily::eager:  // the maximum over all keys is known first
    case AttentionFamily::paged:
      break;
  }
  return {};
}

void expect_declared(const AttentionKernel& kernel, const softfloat::Format& format,
                     const AttentionShape& shape, std::int64_t splits) {
  const std::string name(softfloat::format_name(format));
  SCOPED_TRACE(fmt::format("{} {} {} keys, {} splits", kernel.name, name, shape.kv_len, splits));
  auto backend = make_sim_backend(kernel.name);
  ASSERT_TRUE(backend) << backend.error().message;
  AttentionLayer layer{.shape = shape, .format = format, .attributes = {}};
  AttentionProblem problem;
  problem.shape = shape;
  problem.storage = format;
  problem.mask.causal = false;
  if (kernel.family == AttentionFamily::online_tiles) {
    layer.attributes["splits"] = fmt::to_string(splits);
    problem.launch.splits = splits;
  }
  AttentionCalls calls(**backend, layer);
  const auto found =
      reveal_attention(calls, {.least_outputs = 500, .scores = false, .weights = false});
  ASSERT_TRUE(found) << found.error().message;

  const Declared expected = declared(kernel, problem);
  if (!excepted(kernel, name, &Exception::blocks)) {
    EXPECT_EQ(found->blocks.direction(), expected.direction);
    if (expected.block > 0) {
      EXPECT_EQ(found->blocks.block_size(), expected.block);
    }
    EXPECT_EQ(found->blocks.splits(), expected.splits);
    EXPECT_EQ(found->rescale, expected.rescale);
    if (expected.rescale == RescaleRule::beyond_rise) {
      EXPECT_LE(found->largest_kept_rise, kernel.tiles->rescale_threshold);
      EXPECT_GT(found->smallest_rescaled_rise, kernel.tiles->rescale_threshold);
    }
  } else {
    // An exception that shows after all is none.
    EXPECT_NE(found->blocks.direction(), expected.direction);
  }
  const bool sees_tree = !excepted(kernel, name, &Exception::tree);
  ASSERT_EQ(found->classes.front().tree.has_value(), sees_tree)
      << found->classes.front().why_no_tree;
  if (sees_tree) {
    const auto tree = value_tree(kernel, problem, shape.query_len - 1);
    ASSERT_TRUE(tree) << tree.error().message;
    EXPECT_EQ(to_string(*found->classes.front().tree), to_string(addition_tree(*tree)));
  }
  EXPECT_TRUE(std::ranges::any_of(found->replay.kernels, [&](const KernelAgreement& one) {
    return one.kernel == kernel.name && one.different == 0 && one.same_tree == sees_tree;
  }));
}

TEST(AttentionKernels, AreFoundAsDeclared) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    for (const StorageSums& sums : kernel.storages) {
      AttentionShape shape{
          .query_heads = 2, .kv_heads = 2, .query_len = 1, .kv_len = 500, .head_dim = 64};
      if (kernel.family == AttentionFamily::torch_cpu) {
        shape.kv_len = 1100;  // more than two of its blocks
        expect_declared(kernel, sums.storage, shape, 1);
        shape.query_len = 5;
      }
      // Products rounded to binary16 are counts where p is a power of two.
      if (kernel.family == AttentionFamily::paged) shape.kv_len = 512;
      if (kernel.family == AttentionFamily::llama_cpu) shape.kv_len = 100;
      expect_declared(kernel, sums.storage, shape, 1);
      if (kernel.family != AttentionFamily::online_tiles) continue;
      if (kernel.tiles->split.policy == SplitPolicy::never) continue;
      // Blocks small enough for two in each split.
      shape.head_dim = kernel.device.starts_with("B200") ? 64 : 256;
      shape.query_heads = 4;
      expect_declared(kernel, sums.storage, shape, 2);
      shape.kv_heads = 4;
      shape.kv_len = 511;
      expect_declared(kernel, sums.storage, shape, 3);
    }
  }
}

}  // namespace
}  // namespace kvsim::gpu
