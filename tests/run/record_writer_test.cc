// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "run/record_reader.h"
#include "tests/model/test_file.h"
#include "tests/run/records.h"

namespace kvsim {
namespace {

using testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The lines of a run of one prompt with two arms.
std::vector<std::string> run_lines() {
  std::vector<std::string> lines{to_line(test::prompt_record())};
  for (const char* arm : {"on", "off"}) {
    for (int step = 0; step < 3; ++step) {
      lines.push_back(to_line(test::step_record(arm, step, step + 5)));
    }
  }
  return lines;
}

/// Makes the whole run with this writer; the number of lines that were written.
int write_all(RecordWriter& writer) {
  int written = 0;
  for (const std::string& line : run_lines()) {
    const Result<bool> result = writer.append(line);
    EXPECT_TRUE(result) << result.error().message;
    written += result && *result ? 1 : 0;
  }
  return written;
}

std::string message(const Result<RecordWriter>& writer) {
  return writer ? "accepted" : writer.error().message;
}

TEST(RecordWriter, WritesWhatTheReaderReads) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  {
    Result<RecordWriter> writer = RecordWriter::create(path);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(write_all(*writer), 7);
  }
  const Result<Records> records = read_records(path);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(records->prompts.size(), 1U);
  EXPECT_EQ(records->steps.size(), 6U);
}

// Cut around the end of each line and at every 61st byte, as a killed program may leave it, and
// continued.
TEST(RecordWriter, ContinuesAnInterruptedRunToTheSameBytes) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  std::string whole;
  std::vector<std::size_t> ends;
  for (const std::string& line : run_lines()) {
    whole += line;
    ends.push_back(whole.size());
  }
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const bool near_an_end = std::any_of(ends.begin(), ends.end(), [&](std::size_t end) {
      return length + 1 >= end && length <= end + 1;
    });
    if (!near_an_end && length % 61 != 0) continue;
    test::write_file(path, whole.substr(0, length));
    Result<RecordWriter> writer = RecordWriter::resume(path);
    ASSERT_TRUE(writer) << writer.error().message;
    const auto kept = static_cast<int>(
        std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= length; }));
    const std::size_t kept_bytes = kept == 0 ? 0 : ends[static_cast<std::size_t>(kept) - 1];
    EXPECT_EQ(writer->torn_bytes(), length - kept_bytes);
    EXPECT_EQ(content(path).size(), kept_bytes);
    EXPECT_EQ(write_all(*writer), 7 - kept);
    EXPECT_EQ(content(path), whole) << length;
  }
}

TEST(RecordWriter, PassesOverKeptLinesAndRefusesOthers) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  const std::vector<std::string> lines = run_lines();
  test::write_file(path, lines[0] + lines[1]);
  Result<RecordWriter> writer = RecordWriter::resume(path);
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->next_kept_line(), lines[0]);
  writer->skip();
  EXPECT_EQ(writer->next_kept_line(), lines[1]);
  const Result<bool> other = writer->append(lines[2]);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message,
              HasSubstr("r.jsonl: line 2 is not what this run writes there"));
  EXPECT_TRUE(writer->append(lines[1]));
  EXPECT_TRUE(writer->next_kept_line().empty());
  writer->skip();
  EXPECT_EQ(content(path), lines[0] + lines[1]);
  EXPECT_TRUE(*writer->append(lines[2]));
  EXPECT_EQ(content(path), lines[0] + lines[1] + lines[2]);
}

TEST(RecordWriter, RefusesFilesThatAreNoRecordsAndLeavesThem) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  test::write_file(path, "my thesis, without a newline");
  EXPECT_THAT(message(RecordWriter::create(path)), HasSubstr("r.jsonl: exists; accepted: "));
  EXPECT_THAT(message(RecordWriter::resume(path)), HasSubstr("does not begin like records; acc"));
  EXPECT_EQ(content(path), "my thesis, without a newline");
  EXPECT_THAT(message(RecordWriter::create(folder.file("no/r.jsonl"))),
              HasSubstr("r.jsonl: cannot"));
  EXPECT_THAT(message(RecordWriter::resume(folder.file("."))), HasSubstr("cannot be continued: "));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message(RecordWriter::resume(folder.file("pipe"))), HasSubstr("is no regular file"));
}

TEST(RecordWriter, IsAloneAtItsFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  {
    Result<RecordWriter> first = RecordWriter::create(path);
    ASSERT_TRUE(first);
    const RecordWriter moved = std::move(*first);
    EXPECT_THAT(message(RecordWriter::resume(path)), HasSubstr("is being written by another run"));
  }
  EXPECT_TRUE(RecordWriter::resume(path));
}

TEST(RecordWriter, TakesWholeLinesOnly) {
  const test::TemporaryFolder folder;
  Result<RecordWriter> writer = RecordWriter::create(folder.file("r.jsonl"));
  ASSERT_TRUE(writer);
  for (const char* line : {"", "{}", "{}\n{}\n", "{}\n{}"}) {
    const Result<bool> result = writer->append(line);
    ASSERT_FALSE(result) << line;
    EXPECT_THAT(result.error().message, HasSubstr("accepted: one line, ended by a newline"));
  }
}

// A limit on the file's size makes a write fail half-way, as a full disk does.
TEST(RecordWriter, TakesAFailedWriteBack) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  const std::vector<std::string> lines = run_lines();
  Result<RecordWriter> writer = RecordWriter::create(path);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->append(lines[0]));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = lines[0].size() + 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<bool> failed = writer->append(lines[1]);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("r.jsonl: cannot be written: File too large"));
  EXPECT_EQ(content(path), lines[0]);
  EXPECT_TRUE(writer->append(lines[1]));
  EXPECT_EQ(content(path), lines[0] + lines[1]);
}

TEST(RunMeta, StandsBesideTheRecords) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("r.jsonl");
  const RunMeta meta{.wall_seconds = 1.5, .host = "a \"b\"", .threads = 7, .simd = "avx2"};
  ASSERT_TRUE(write_run_meta(path, meta));
  ASSERT_TRUE(write_run_meta(path, meta));
  EXPECT_EQ(content(path + ".meta.json"),
            "{\"schema\":\"kvsim.record_meta/1\",\"wall_seconds\":1.5,\"host\":\"a \\\"b\\\"\","
            "\"threads\":7,\"simd\":\"avx2\"}\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_FALSE(write_run_meta(folder.file("no/r.jsonl"), meta));
}

}  // namespace
}  // namespace kvsim
