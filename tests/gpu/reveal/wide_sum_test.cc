// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Sums of which a part is kept in binary64, computed here by the machine's own float and double;
// and one row at several numbers of rows.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpu/reveal/reveal.h"
#include "gpu/reveal/same_row.h"
#include "gpu/sim_backend.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// Four fused accumulators over whole fours of terms in float; the rest one by one in double, from
/// products rounded to float, or, `exact`, from products as they are.
class PlainLoop final : public Reduction {
 public:
  explicit PlainLoop(std::int64_t terms, bool exact = false) : terms_(terms), exact_(exact) {}

  [[nodiscard]] std::int64_t terms() const override { return terms_; }
  [[nodiscard]] std::int64_t rows() const override { return 1; }
  [[nodiscard]] std::int64_t columns() const override { return 32; }
  [[nodiscard]] softfloat::Format input() const override { return softfloat::binary32; }
  [[nodiscard]] softfloat::Format output() const override { return softfloat::binary32; }
  [[nodiscard]] std::string description() const override { return "plain loop"; }

 private:
  Result<std::vector<float>> compute(std::span<const float> left,
                                     std::span<const float> right) override {
    std::vector<float> sums;
    for (std::int64_t j = 0; j < columns(); ++j) {
      sums.push_back(sum(left.data(), right.data() + j * terms_));
    }
    return sums;
  }
  [[nodiscard]] float sum(const float* a, const float* b) const {
    std::array<float, 4> lanes{};
    const std::int64_t body = terms_ / 16 * 16;
    for (std::int64_t k = 0; k < body; ++k) {
      float& lane = lanes[static_cast<std::size_t>(k % 4)];
      lane = std::fmaf(a[k], b[k], lane);
    }
    double rest = 0;
    for (std::int64_t k = body; k < terms_; ++k) {
      const float rounded = a[k] * b[k];
      rest += exact_ ? static_cast<double>(a[k]) * static_cast<double>(b[k])
                     : static_cast<double>(rounded);
    }
    const float first = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    return static_cast<float>(rest + static_cast<double>(first));
  }

  std::int64_t terms_;
  bool exact_;
};

RevealedSums revealed(PlainLoop loop) {
  auto found = reveal(loop, {.least_outputs = 2000});
  EXPECT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->classes.size(), 1U);
  return std::move(found->classes.front());
}

TEST(WideSum, ExplainsALastPartInBinary64) {
  for (const std::int64_t terms : {41, 200}) {
    const RevealedSums sums = revealed(PlainLoop(terms));
    EXPECT_TRUE(sums.explained) << terms;
    ASSERT_TRUE(sums.model);
    EXPECT_FALSE(sums.model->order);
    EXPECT_EQ(sums.model->wide_from, terms / 16 * 16);
  }
}

TEST(WideSum, ExplainsASumThatIsAllInBinary64) {
  const RevealedSums sums = revealed(PlainLoop(15));
  EXPECT_TRUE(sums.explained);
  ASSERT_TRUE(sums.model);
  EXPECT_EQ(sums.model->wide_from, 0);
  EXPECT_EQ(sums.arithmetic.product, "rounded");
}

/// Products that are not rounded are no part of the model: it must say so.
TEST(WideSum, IsNotTakenForExactProducts) {
  const RevealedSums sums = revealed(PlainLoop(41, true));
  EXPECT_FALSE(sums.explained);
  EXPECT_GT(sums.outputs_different, 0);
}

TEST(SameRow, ChangesWithTheNumberOfRowsAndIsReplayed) {
  auto backend = make_sim_backend("torch-cpu-avx2-linear");
  ASSERT_TRUE(backend);
  const ReductionShape shape{
      .operation = "linear", .format = softfloat::binary32, .columns = 30, .terms = 201};
  constexpr std::array<std::int64_t, 4> numbers{1, 2, 3, 4};
  const auto rows = compare_row(**backend, shape, numbers, {.least_outputs = 500});
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 4U);
  for (const RowAmongOthers& row : *rows) {
    EXPECT_TRUE(row.found.explained()) << row.rows;
    EXPECT_EQ(row.unlike_replay, 0) << row.rows;
    EXPECT_EQ(row.different > 0, row.first_different >= 0) << row.rows;
  }
  EXPECT_EQ((*rows)[0].different, 0);
  EXPECT_GT((*rows)[1].different, 0);
  EXPECT_EQ((*rows)[1].sums, (*rows)[2].sums);
  EXPECT_NE((*rows)[2].sums, (*rows)[3].sums);
}

}  // namespace
}  // namespace kvsim::gpu
