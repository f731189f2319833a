// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/predict/linear_sample.h"
#include "sim/predict/projections.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One row on the vector kernel, more on the matrix kernel; FlashAttention-2 for everything.
KernelChoice by_rows() {
  return {[](std::int64_t rows) -> const LinearKernel& {
            return *find_linear_kernel(rows == 1 ? "h100-gemv" : "h100-gemm");
          },
          [](std::int64_t) -> const AttentionKernel& { return *find_attention_kernel("a100-fa2"); },
          132, 0};
}

KernelChoice one_kernel(const char* linear) {
  KernelChoice kernels = by_rows();
  kernels.linear = [linear](std::int64_t) -> const LinearKernel& {
    return *find_linear_kernel(linear);
  };
  return kernels;
}

ShapeOptions options(KernelChoice kernels) {
  ShapeOptions result;
  result.decoder.hidden = 128;
  result.decoder.ffn = 256;
  result.decoder.query_heads = 4;
  result.decoder.kv_heads = 2;
  result.decoder.head_dim = 64;
  result.storage = softfloat::binary16;
  result.kernels = std::move(kernels);
  result.kv_len = 300;
  result.rows = 32;
  result.outputs = 128;
  return result;
}

const SizeClasses& answer(const ShapeReport& report, std::string_view question,
                          std::string_view operator_name) {
  for (const SizeClasses& classes : report.classes) {
    if (classes.question == question && classes.operator_name == operator_name) return classes;
  }
  throw std::logic_error("no such answer");
}

TEST(Shapes, RowsChangeTheLinearKernelAtTwo) {
  const ShapeReport report = answer_shapes(options(by_rows()), {.rows = {1, 8}}).value();
  const SizeClasses& linear = answer(report, "rows", "q, k, v projection");
  ASSERT_EQ(linear.classes.size(), 2U);
  EXPECT_THAT(linear.classes[0].sizes, ElementsAre(IndexRange{1, 1}));
  EXPECT_THAT(linear.classes[0].rules, ElementsAre(HasSubstr("h100-gemv: lanes(32,1")));
  EXPECT_THAT(linear.classes[1].sizes, ElementsAre(IndexRange{2, 8}));
  EXPECT_THAT(linear.classes[1].rules, ElementsAre(HasSubstr("h100-gemm: mma(")));
  EXPECT_GT(linear.classes[1].from_reference.differing, 0);
}

// One kernel with one chain over K: the number of rows changes nothing.
TEST(Shapes, ABatchInvariantKernelHasOneClass) {
  const ShapeReport report =
      answer_shapes(options(one_kernel("h100-batch-invariant")),
                    {.rows = {1, 64}, .chunks = {40, 24, 1}, .verify_widths = {2, 3, 4}})
          .value();
  for (const SizeClasses& classes : report.classes) {
    if (classes.operator_name == "attention") continue;
    EXPECT_EQ(classes.classes.size(), 1U) << classes.question << ' ' << classes.operator_name;
  }
  for (const ChunkDifference& chunk : report.chunks) {
    if (chunk.operator_name != "attention") {
      EXPECT_EQ(chunk.difference.differing, 0) << chunk.first;
    }
  }
}

TEST(Shapes, VerifyWidthsStartFromOneToken) {
  const ShapeReport report =
      answer_shapes(options(by_rows()), {.verify_widths = {2, 3, 4, 5}}).value();
  const SizeClasses& linear = answer(report, "verify width", "MLP down");
  EXPECT_EQ(linear.reference, 1);
  ASSERT_EQ(linear.classes.size(), 2U);
  EXPECT_THAT(linear.classes[1].sizes, ElementsAre(IndexRange{2, 5}));
  EXPECT_EQ(answer(report, "verify width", "attention").classes[0].from_reference.elements, 4 * 64);
}

TEST(Shapes, ChunksCoverThePromptInTurn) {
  const ShapeReport report =
      answer_shapes(options(by_rows()), {.cached = 50, .new_tokens = 14, .chunks = {40, 20, 4}})
          .value();
  std::vector<std::pair<std::int64_t, std::int64_t>> chunks;
  for (const ChunkDifference& chunk : report.chunks) {
    if (chunk.question == "chunks" && chunk.operator_name == "attention") {
      chunks.emplace_back(chunk.first, chunk.last);
      EXPECT_EQ(chunk.positions, std::min<std::int64_t>(16, chunk.last - chunk.first + 1));
      EXPECT_EQ(chunk.difference.elements, chunk.positions * 4 * 64);
    }
    if (chunk.question == "prefix hit") {
      EXPECT_EQ(chunk.first, 50);
      EXPECT_EQ(chunk.last, 63);
    }
  }
  EXPECT_THAT(chunks, ElementsAre(std::pair(0, 39), std::pair(40, 59), std::pair(60, 63)));
}

TEST(Shapes, RanksRoundPartialSums) {
  const ShapeReport report =
      answer_shapes(options(one_kernel("h100-gemm")), {.ranks = {1, 2}}).value();
  EXPECT_EQ(answer(report, "ranks", "q, k, v projection").classes.size(), 1U);
  const SizeClasses& output = answer(report, "ranks", "output projection");
  ASSERT_EQ(output.classes.size(), 2U);
  EXPECT_GT(output.classes[1].from_reference.differing, 0);
  EXPECT_THAT(output.classes[1].rules, ElementsAre(HasSubstr("on each of 2 ranks")));
  const auto error = answer_shapes(options(one_kernel("h100-gemm")), {.ranks = {1, 3}});
  ASSERT_FALSE(error);
  EXPECT_THAT(error.error().message, HasSubstr("ranks is 3"));
}

// Neighbours of 1 in binary16 are 1 + 2^-10 and its half step is 2^-11: 1 + 3 · 2^-12 lies beyond.
TEST(LinearOnRanks, RoundsEverySumToStorage) {
  LinearSample sample{softfloat::binary16, 1, 2, 1, 1, {1, 1}, {1, 3 * 0x1p-12F}};
  const KernelChoice kernels = one_kernel("control-linear");
  EXPECT_EQ(run_linear_on_ranks(sample, kernels, {0, 1, 1}, 2, {}).value(),
            (std::vector<float>{1 + 0x1p-10F}));
  sample.terms = 3;
  sample.x = {1, 1, 1};
  sample.w = {1, 0x1p-11F, 0x1p-11F};
  // In turn: a tie to 1, twice. At once: 1 + 2^-10.
  EXPECT_EQ(run_linear_on_ranks(sample, kernels, {0, 1, 1}, 3, {}).value(),
            (std::vector<float>{1}));
  EXPECT_EQ(run_linear_on_ranks(sample, kernels, {0, 1, 1}, 1, {}).value(),
            (std::vector<float>{1 + 0x1p-10F}));
}

TEST(Projections, RowsAloneDifferOnlyWhereTheKernelDoes) {
  ProjectionOptions request;
  request.storage = softfloat::binary16;
  request.hidden = 512;
  request.kv_width = 64;
  request.launch_rows = 512;
  request.rows = 256;
  request.kernels = one_kernel("h100-gemm");
  const ProjectionDifference same = compare_projections(request).value();
  EXPECT_EQ(same.k.elements, 256 * 64);
  EXPECT_EQ(same.k.differing, 0);
  EXPECT_EQ(same.v.differing, 0);
  EXPECT_EQ(same.one_row_rule, same.all_rows_rule);
  request.kernels = by_rows();
  const ProjectionDifference other = compare_projections(request).value();
  EXPECT_GT(other.k.differing, 0);
  EXPECT_LE(other.k.max_absolute, 0.01);
  EXPECT_NE(other.one_row_rule, other.all_rows_rule);
}

TEST(KernelChoice, FollowsTheDispatchUnlessAKernelIsNamed) {
  const Dispatch& h100 = **find_dispatch("h100");
  const KernelChoice plain = choose_kernels(h100, "decode", "prefill").value();
  EXPECT_EQ(plain.attention(1).name, h100.attention_decode);
  EXPECT_EQ(plain.attention(2).name, h100.attention_prefill);
  EXPECT_EQ(plain.linear(1).name, "h100-gemv");
  EXPECT_EQ(plain.linear(65).name, "h100-gemm");
  EXPECT_EQ(plain.multiprocessors, 132);
  const KernelChoice named = choose_kernels(h100, "a100-fa2", "decode").value();
  EXPECT_EQ(named.attention(1).name, "a100-fa2");
  EXPECT_EQ(named.attention(7).name, h100.attention_decode);
  EXPECT_THAT(choose_kernels(h100, "h100-fa8", "prefill").error().message,
              HasSubstr("--on is 'h100-fa8'; accepted: decode, prefill"));
  EXPECT_THAT(choose_kernels(**find_dispatch("exact-sums"), "decode", "prefill").error().message,
              HasSubstr("no kernels"));
}

}  // namespace
}  // namespace kvsim
