// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/operators/rope.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

RopeTable table_of(std::string_view kernel, std::int64_t rotated, std::int64_t positions,
                   double base = 10000) {
  const RopeKernel* const row = find_rope_kernel(kernel);
  EXPECT_NE(row, nullptr) << kernel;
  const Result<RopeTable> table = make_rope_table(
      *row,
      {.storage = softfloat::binary16, .rotated = rotated, .base = base, .positions = positions});
  EXPECT_TRUE(table) << (table ? "" : table.error().message);
  return table ? *table : RopeTable{};
}

// EleutherAI/gpt-neox, issue 1003, recomputed: frequencies, positions and angles in binary16
// against a float32 table.
TEST(RopeTable, HalfPrecisionAnglesOfGptNeox) {
  const RopeTable half = table_of("half-table-rope", 32, 2048);
  const RopeTable full = table_of("control-rope", 32, 2048);
  const auto at = [](std::size_t position, std::size_t pair) { return position * 16 + pair; };
  // 1857 × 0.56234133 = 1044.26785, printed as 1044.2679; the float nearest to it is 1044.26782.
  EXPECT_NEAR(1857 * static_cast<double>(full.angle[at(1, 1)]), 1044.2679, 5e-5);
  EXPECT_EQ(full.angle[at(1857, 1)], 1044.26782F);
  EXPECT_EQ(half.angle[at(1857, 1)], 1045.0F);
  float largest = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < full.cosine.size(); ++i) {
    const float difference = std::fabs(half.cosine[i] - full.cosine[i]);
    if (difference > largest) {
      largest = difference;
      where = i;
    }
  }
  EXPECT_EQ(where, at(2008, 1));
  EXPECT_NEAR(largest, 0.78186, 5e-6);
}

TEST(RopeTable, ValuesByHand) {
  const RopeTable table = table_of("control-rope", 4, 3);
  ASSERT_EQ(table.pairs, 2);
  ASSERT_EQ(table.angle.size(), 6U);
  EXPECT_EQ(table.angle[0], 0.0F);
  EXPECT_EQ(table.cosine[0], 1.0F);
  EXPECT_EQ(table.sine[1], 0.0F);
  EXPECT_EQ(table.angle[2], 1.0F);
  EXPECT_EQ(table.angle[3], 0.01F);  // 1 ÷ 10000^(2/4) = 1 ÷ 100
  EXPECT_EQ(table.angle[5], 0.02F);
  EXPECT_EQ(table.cosine[2], 0.5403023F);
  EXPECT_EQ(table.sine[4], 0.9092974F);
}

// s = 10000^(−2/4) = 0.01; the angle of pair 1 at position 7 is 7 · s, of pair 2 (d = 8, s = 0.1)
// (7 · 0.1) · 0.1, each product rounded: not 7 ÷ 100 rounded once.
TEST(RopeTable, RepeatedProducts) {
  const RopeTable table = table_of("ggml-rope", 8, 8);
  const float s = 0.1F;
  EXPECT_EQ(table.angle[7 * 4 + 1], 7 * s);
  EXPECT_EQ(table.angle[7 * 4 + 2], 7 * s * s);
  EXPECT_EQ(table.angle[7 * 4 + 3], 7 * s * s * s);
}

TEST(RopeTable, CustomFrequenciesReplaceThePowers) {
  const std::vector<float> custom{0.5F, 0.25F};
  const Result<RopeTable> table = make_rope_table(
      *find_rope_kernel("ggml-rope"),
      {.storage = softfloat::bfloat16, .rotated = 4, .positions = 3, .custom_frequencies = custom});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->angle, (std::vector<float>{0, 0, 0.5F, 0.25F, 1.0F, 0.5F}));
}

TEST(RopeTable, RefusesWhatCannotBe) {
  const RopeKernel& kernel = *find_rope_kernel("control-rope");
  const auto message = [&](const RopeTableProblem& problem) {
    const Result<RopeTable> table = make_rope_table(kernel, problem);
    return table ? std::string("accepted") : table.error().message;
  };
  const softfloat::Format storage = softfloat::binary16;
  EXPECT_NE(message({.storage = storage, .rotated = 3, .positions = 1}).find("3 rotated"),
            std::string::npos);
  EXPECT_NE(message({.storage = storage, .rotated = 4, .base = -1}).find("base -1"),
            std::string::npos);
  EXPECT_NE(message({.storage = storage, .rotated = 4, .positions = 1LL << 40}).find("2^30"),
            std::string::npos);
  const std::vector<float> one{1.0F};
  EXPECT_NE(message({.storage = storage, .rotated = 4, .custom_frequencies = one})
                .find("1 frequencies for 2"),
            std::string::npos);
}

TEST(RopeApply, RotatesAQuarterTurn) {
  // cos = 0, sin = 1: (x, y) becomes (−y, x) in both layouts; the third pair of channels is copied.
  const RopeTable table{
      .positions = 1, .pairs = 2, .angle = {0, 0}, .cosine = {0, 0}, .sine = {1, 1}};
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  std::vector<float> out(6);
  const RopeProblem problem{
      .storage = softfloat::binary16, .heads = 1, .length = 1, .head_dim = 6, .x = x.data()};
  ASSERT_TRUE(apply_rope(*find_rope_kernel("control-rope"), table, problem, out.data()));
  EXPECT_EQ(out, (std::vector<float>{-3, -4, 1, 2, 5, 6}));
  ASSERT_TRUE(
      apply_rope(*find_rope_kernel("control-rope-interleaved"), table, problem, out.data()));
  EXPECT_EQ(out, (std::vector<float>{-2, 1, -4, 3, 5, 6}));
}

TEST(RopeApply, RefusesPositionsBeyondTheTable) {
  const RopeTable table = table_of("control-rope", 4, 3);
  const std::vector<float> x(8);
  std::vector<float> out(8);
  RopeProblem problem{.storage = softfloat::binary16,
                      .heads = 1,
                      .length = 2,
                      .head_dim = 4,
                      .first_position = 2,
                      .x = x.data()};
  const auto result = apply_rope(*find_rope_kernel("control-rope"), table, problem, out.data());
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("positions 2 to 3"), std::string::npos);
  problem.first_position = 1;
  EXPECT_TRUE(apply_rope(*find_rope_kernel("control-rope"), table, problem, out.data()));
}

}  // namespace
}  // namespace kvsim
