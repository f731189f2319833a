// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Row 0 of a product of 64 rows against the same row alone: why they differ, and both to the bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "gpu/reveal/same_row.h"
#include "softfloat/formats.h"
#include "tests/gpu/crosscheck/torch_keys.h"

namespace kvsim::gpu {
namespace {

/// The query layer of SmolLM2-135M.
constexpr std::int64_t hidden = 576;

std::vector<RowAmongOthers> rows_of(const softfloat::Format& format) {
  const auto backend = test::torch_backend();
  EXPECT_NE(backend, nullptr);
  if (backend == nullptr) return {};
  const ReductionShape shape{
      .operation = "linear", .format = format, .columns = hidden, .terms = hidden};
  constexpr std::array<std::int64_t, 2> rows{1, 64};
  const auto found = compare_row(*backend, shape, rows, {.least_outputs = 2000});
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : std::vector<RowAmongOthers>{};
}

/// What holds on any CPU: each of the two is the replay of what was revealed for its M.
void expect_replayed(const std::vector<RowAmongOthers>& rows) {
  ASSERT_EQ(rows.size(), 2U);
  for (const RowAmongOthers& row : rows) {
    EXPECT_TRUE(row.found.explained()) << row.rows;
    EXPECT_EQ(row.compared, hidden);
    EXPECT_EQ(row.unlike_replay, 0) << row.rows;
  }
  fmt::print("{} of {} outputs of row 0 change from M = 1 to M = 64\n", rows[1].different, hidden);
}

TEST(TorchSameRow, ChangesWithTheRowsBesideItInFloat32) {
  const auto rows = rows_of(softfloat::binary32);
  expect_replayed(rows);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_GT(rows[1].different, hidden / 2);
  EXPECT_GE(rows[1].first_different, 0);
  // Two classes: MKL's product of one row, and its blocks.
  ASSERT_TRUE(rows[0].found.classes.front().model && rows[0].found.classes.front().model->order);
  ASSERT_TRUE(rows[1].found.classes.front().model && rows[1].found.classes.front().model->order);
  EXPECT_EQ(to_string(*rows[0].found.classes.front().model->order),
            "lanes(4,1,join=halving,tail=scalar,head=1)");
  EXPECT_EQ(to_string(*rows[1].found.classes.front().model->order), "blocks(192)");
}

TEST(TorchSameRow, StaysTheSameInBfloat16) {
  const auto rows = rows_of(softfloat::bfloat16);
  expect_replayed(rows);
  if (!test::is_known_key()) GTEST_SKIP() << "new CPU key";
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].different, 0);
}

}  // namespace
}  // namespace kvsim::gpu
