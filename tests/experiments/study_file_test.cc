// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/study_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/experiments/fake_setup.h"
#include "tests/model/test_file.h"

/// The file of a study: the same bytes whatever the threads, the shards and the interruptions.
namespace kvsim::experiments {
namespace {

using testing::HasSubstr;

class StudyFile : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string run(const std::string& name, const StudyRunOptions& options) const {
    const auto done = run_study(row_, setup_.setup, path(name), options);
    EXPECT_TRUE(done) << done.error().message;
    return read(path(name));
  }

  test::FakeSetup setup_{5};
  const StudyRow& row_ = *study_named("behaviour").value();
  test::TemporaryFolder folder_;
};

TEST_F(StudyFile, HasTheSameBytesWithAnyNumberOfThreads) {
  const std::string one = run("one", {});
  EXPECT_EQ(std::ranges::count(one, '\n'),
            1 + 5 + 2 * 5 + 2 * 5);  // head, greedy, two seeds of top-k, unrelated
  EXPECT_EQ(run("three", {.threads = 3}), one);
}

TEST_F(StudyFile, GoesOnFromAnyPlace) {
  const std::string whole = run("whole", {});
  std::size_t number = 0;
  for (std::size_t size : {std::size_t{0}, std::size_t{7}, whole.find('\n') + 1,
                           whole.find('\n') + 20, whole.size() - 1, whole.size()}) {
    const std::string name = "part" + std::to_string(number++);
    test::write_file(path(name), whole.substr(0, size));
    EXPECT_EQ(run(name, {.threads = 2, .resume = true}), whole) << size;
  }
  EXPECT_EQ(run("new", {.resume = true}), whole);
}

TEST_F(StudyFile, OfShardsJoinsToThatOfOneRun) {
  const std::string whole = run("whole", {});
  std::vector<std::string> parts;
  for (const std::int64_t i : {2, 0, 1}) {
    const std::string name = "shard" + std::to_string(i);
    static_cast<void>(run(name, {.shard = {i, 3}}));
    parts.push_back(path(name));
  }
  const auto merged = merge_studies(parts, path("merged"));
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(read(path("merged")), whole);

  parts.pop_back();
  const auto missing = merge_studies(parts, path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("piece 1 is in none of 2 files"));
  EXPECT_EQ(read(path("missing")), "");
}

TEST_F(StudyFile, OfAnotherStudyIsRefused) {
  static_cast<void>(run("file", {}));
  test::FakeSetup other(4);
  const auto resumed = run_study(row_, other.setup, path("file"), {.resume = true});
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().kind, ErrorKind::file);
  const auto again = run_study(row_, setup_.setup, path("file"), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::file);

  const auto merged = run_study(row_, other.setup, path("other"), {});
  ASSERT_TRUE(merged);
  const std::vector<std::string> parts{path("file"), path("other")};
  const auto joined = merge_studies(parts, path("joined"));
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message, HasSubstr("is of another study than the first file"));
}

TEST_F(StudyFile, IsReadBack) {
  static_cast<void>(run("file", {}));
  const auto records = read_study(path("file"));
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->units.size(), 25U);
  const auto units = row_.make()->units(setup_.setup);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_EQ(records->units[i].unit.part, (*units)[i].part);
    EXPECT_EQ(records->units[i].unit.seed, (*units)[i].seed);
    EXPECT_EQ(records->units[i].values, row_.make()->compute(setup_.setup, (*units)[i]).value());
  }
  EXPECT_EQ(records->head.at("study"), "behaviour");
}

TEST_F(StudyFile, ThatIsBrokenIsRefusedByLine) {
  const std::string whole = run("file", {});
  const std::size_t head = whole.find('\n') + 1;
  const auto message = [&](const std::string& text) {
    test::write_file(path("broken"), text);
    const auto records = read_study(path("broken"));
    EXPECT_FALSE(records);
    return records ? std::string() : records.error().message;
  };
  EXPECT_THAT(message(whole.substr(0, whole.size() - 1)), HasSubstr("has no end"));
  EXPECT_THAT(message(whole.substr(0, head)), HasSubstr("has 0 of 25 pieces"));
  EXPECT_THAT(message(whole.substr(head)), HasSubstr("line 1: field \"schema\" is not there"));
  EXPECT_THAT(message("[]\n"), HasSubstr("line 1: \"[]\"; accepted: a JSON object"));
  EXPECT_THAT(message(whole.substr(0, head) + "{}\n"),
              HasSubstr("line 2: field \"unit\" is not there; accepted: 0 to 16777216"));
  EXPECT_THAT(message(whole.substr(0, head) + "{\"unit\":-1}\n"), HasSubstr("field \"unit\" is"));
  const std::size_t second = whole.find('\n', head) + 1;
  EXPECT_THAT(message(whole.substr(0, head) + whole.substr(second)),
              HasSubstr("line 2: is piece 1; accepted: piece 0 of 25"));
  std::string many = whole.substr(0, head);
  many.replace(many.find("\"units\":25"), 10, "\"units\":99999999999");
  EXPECT_THAT(message(many), HasSubstr("field \"units\" is"));
  EXPECT_FALSE(read_study(path("nowhere")));
}

TEST(ParseShard, TakesPartsOfAWhole) {
  const auto shard = parse_shard("2/5");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->index, 2);
  EXPECT_EQ(shard->of, 5);
  for (const char* text : {"", "1", "/", "1/", "/2", "2/2", "-1/2", "0/0", "0/4097", "0/2x", "a/b",
                           "0 /2", "99999999999999999999/2"}) {
    EXPECT_FALSE(parse_shard(text)) << text;
  }
}

TEST(Summarize, RefusesRecordsThatAreNotTheStudys) {
  StudyRecords records;
  records.units.push_back({{"greedy", 0, 0, 0}, Json{{"flip", "text"}}});
  const auto summary = summarize(*study_named("behaviour").value(), records);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().kind, ErrorKind::file);
  EXPECT_THAT(summary.error().message, HasSubstr("records of behaviour"));
}

}  // namespace
}  // namespace kvsim::experiments
