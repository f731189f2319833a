// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/model/test_file.h"
#include "tests/run/fake_engine.h"

namespace kvsim {
namespace {

using testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

PreparedRun prepared(const test::FakeEngine& engine, std::int64_t prompts, std::uint64_t seed = 1) {
  RunOptions options;
  options.arms = {*parse_arm("live@a"), *parse_arm("off:noise=22@b")};
  options.max_new_tokens = 3;
  options.sampling.seed = seed;
  std::vector<RunPrompt> list;
  for (std::int64_t i = 0; i < prompts; ++i) list.push_back({i, {static_cast<TokenId>(i), 2}});
  Result<PreparedRun> run = PreparedRun::make(engine, std::move(options), std::move(list));
  EXPECT_TRUE(run);
  return std::move(*run);
}

/// Runs into the file; the lines that came out, or the error.
std::string run_lines(const PreparedRun& run, const std::string& path, bool resume,
                      std::int64_t* kept = nullptr) {
  std::string lines;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    lines += to_line(line);
    return true;
  };
  const Result<RunFileSummary> summary = run_to_file(run, path, resume, output);
  if (!summary) {
    test::expect_one_line(summary.error());
    return summary.error().message;
  }
  if (kept != nullptr) *kept = summary->kept_prompts;
  return lines;
}

TEST(RunFile, HasTheLinesOfTheRun) {
  const test::TemporaryFolder folder;
  const test::FakeEngine engine;
  const PreparedRun run = prepared(engine, 3);
  const std::string lines = run_lines(run, folder.file("r.jsonl"), false);
  EXPECT_EQ(content(folder.file("r.jsonl")), lines);
  EXPECT_THAT(run_lines(run, folder.file("r.jsonl"), false), HasSubstr("exists; accepted"));
  EXPECT_EQ(content(folder.file("r.jsonl")), lines);
}

TEST(RunFile, OfAnInterruptedRunEndsWithTheBytesOfAWholeOne) {
  const test::TemporaryFolder folder;
  const test::FakeEngine engine;
  const PreparedRun run = prepared(engine, 3);
  const std::string whole = run_lines(run, folder.file("whole.jsonl"), false);
  const std::string path = folder.file("r.jsonl");
  for (std::size_t cut = 0; cut <= whole.size(); cut += cut + 911 < whole.size() ? 911 : 41) {
    test::write_file(path, whole.substr(0, cut));
    EXPECT_EQ(run_lines(run, path, true), whole) << cut;
    EXPECT_EQ(content(path), whole) << cut;
  }
}

TEST(RunFile, TakesWholePromptsAsTheyStand) {
  const test::TemporaryFolder folder;
  const test::FakeEngine engine;
  const PreparedRun run = prepared(engine, 3);
  const std::string path = folder.file("r.jsonl");
  run_lines(run, path, false);
  engine.fake.passes.clear();
  std::int64_t kept = 0;
  run_lines(run, path, true, &kept);
  EXPECT_EQ(kept, 2);
  EXPECT_EQ(engine.fake.passes.size(), 6U);  // of the last prompt alone
}

TEST(RunFile, OfAnotherRunIsLeftAsItWas) {
  const test::TemporaryFolder folder;
  const test::FakeEngine engine;
  const std::string path = folder.file("r.jsonl");
  const std::string whole = run_lines(prepared(engine, 3), path, false);
  EXPECT_THAT(run_lines(prepared(engine, 3, 2), path, true),
              HasSubstr("line 1 is not what this run writes there; accepted"));
  EXPECT_THAT(run_lines(prepared(engine, 2), path, true),
              HasSubstr("holds more than the 2 prompts of this run; accepted"));
  EXPECT_EQ(content(path), whole);
  const std::size_t step = whole.rfind("\"token\":");
  std::string changed = whole;
  changed[whole.find("\"multiply_adds\":", step) + 16] = '9';
  test::write_file(path, changed);
  EXPECT_THAT(run_lines(prepared(engine, 3), path, true), HasSubstr("is not what this run writes"));
  EXPECT_EQ(content(path), changed);
  test::write_file(path, whole + whole.substr(whole.rfind('\n', whole.size() - 2) + 1));
  EXPECT_THAT(run_lines(prepared(engine, 3), path, true),
              HasSubstr("holds more lines than this run writes; accepted"));
}

TEST(RunFile, IsNotLeftBehindByARunThatFailsAtOnce) {
  const test::TemporaryFolder folder;
  test::FakeEngine engine;
  engine.fake.fails_for_token = 0;
  engine.fake.fails_at_rows = 2;
  const std::string path = folder.file("r.jsonl");
  RunOutput output;
  output.line = [](const RecordLine&) -> Result<bool> { return true; };
  EXPECT_FALSE(run_to_file(prepared(engine, 3), path, false, output));
  EXPECT_FALSE(std::filesystem::exists(path));
  engine.fake.fails_at_rows = 3;  // the second step: there is something to keep
  EXPECT_FALSE(run_to_file(prepared(engine, 3), path, false, output));
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace kvsim
