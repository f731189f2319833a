// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// What a replay says of results made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/replay/report.h"
#include "sim/compare.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary32;
using ::testing::ElementsAre;

ReplayOutput output(std::string name, const softfloat::Format& format,
                    const std::vector<float>& values) {
  ReplayOutput out;
  out.name = std::move(name);
  out.format = format;
  out.bytes = encode_values(format, values);
  return out;
}

/// [2 heads, 2 positions, 2]: b differs from a at (1, 0, 1) by two steps; c equals a; d is of
/// another format.
Replay sample() {
  Replay replay;
  replay.operator_name = "sample";
  replay.input = Json::object();
  replay.shape = {2, 2, 2};
  replay.heads = 2;
  replay.positions = 2;
  replay.head_name = "head";
  replay.outputs = {output("a", bfloat16, {1, 1, 1, 1, 1, 1, 1, 1}),
                    output("b", bfloat16, {1, 1, 1, 1, 1, 1.015625F, 1, 1}),
                    output("c", bfloat16, {1, 1, 1, 1, 1, 1, 1, 1}),
                    output("d", binary32, {1, 1, 1, 1, 1, 1, 1, 1})};
  return replay;
}

TEST(Replay, ClassesAreNamedLikeColumns) {
  EXPECT_EQ(class_name(0), "A");
  EXPECT_EQ(class_name(25), "Z");
  EXPECT_EQ(class_name(26), "AA");
  EXPECT_EQ(class_name(701), "ZZ");
  EXPECT_EQ(class_name(702), "AAA");
}

TEST(Replay, IndicesOfAnElement) {
  const std::vector<std::int64_t> shape{2, 3, 4};
  EXPECT_THAT(element_at(shape, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(element_at(shape, 23), ElementsAre(1, 2, 3));
  EXPECT_THAT(element_at(shape, 17), ElementsAre(1, 1, 1));
}

TEST(Replay, FindsClassesPairsAndPlaces) {
  const Replay replay = sample();
  const ReplayFindings found = find_differences(replay, std::nullopt);
  EXPECT_THAT(found.classes, ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(found.representatives, ElementsAre(0, 1, 3));
  ASSERT_EQ(found.pairs.size(), 3U);
  ASSERT_TRUE(found.pairs[0]);
  EXPECT_EQ(found.pairs[0]->summary.different, 1);
  EXPECT_EQ(found.pairs[0]->summary.max_ulp, 2U);
  EXPECT_EQ(found.pairs[0]->max_row_ulp, 2);
  EXPECT_THAT(found.pairs[0]->map, ElementsAre(MismatchGroup{{{1, 1}}, {{0, 0}}, 1}));
  EXPECT_FALSE(found.pairs[1]);
  EXPECT_FALSE(found.pairs[2]);
}

TEST(Replay, ADifferenceFromTheExpectedIsExitCodeOne) {
  Replay replay = sample();
  replay.outputs.resize(2);
  const ReplayOutput wanted = replay.outputs[0];
  const Expected expected{"out", bfloat16, replay.shape, wanted.bytes};
  const Answer answer = replay_answer(replay, "file", expected);
  EXPECT_EQ(answer.exit_code, ExitCode::check_failed);
  EXPECT_EQ(answer.complaint,
            "b: 1 of 8 elements differs from out; the first is [1, 0, 1]: found 0x3f82 (1.016), "
            "expected 0x3f80 (1)");
  EXPECT_EQ(answer.report.result["mismatches"], 1);
  EXPECT_EQ(answer.report.result["first"]["name"], "b");
  EXPECT_EQ(answer.report.result["outputs"][0]["expected"]["mismatches"], 0);
  replay.outputs.resize(1);
  const Answer equal = replay_answer(replay, "file", expected);
  EXPECT_EQ(equal.exit_code, ExitCode::done);
  EXPECT_EQ(equal.report.headline, "All 8 elements equal out bit for bit.");
}

}  // namespace
}  // namespace kvsim
