// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::eight_bytes;
using test::expect_one_line;
using test::TemporaryFolder;
using test::write_file;

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::size_t files_in(const TemporaryFolder& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++count;
  }
  return count;
}

TEST(SafetensorsWriter, WritesExactlyTheseBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const std::vector<Tensor> tensors = {{"b", Dtype::f16, {1, 2}, bytes_of("abcd")},
                                       {"a", Dtype::u8, {}, bytes_of("x")}};
  const std::vector<MetadataEntry> metadata = {{"k\n", "\"v\""}};
  const auto written = write_safetensors(path, tensors, metadata);
  ASSERT_TRUE(written) << written.error().message;
  const std::string header = R"({"__metadata__":{"k\n":"\"v\""},)"
                             R"("b":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"U8","shape":[],"data_offsets":[4,5]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  EXPECT_EQ(content_of(path),
            eight_bytes(padded) + header + std::string(padded - header.size(), ' ') + "abcdx");
  EXPECT_EQ(*written, content_of(path).size());
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(SafetensorsWriter, RoundTripOfTheCapture) {
  const auto original = SafetensorsFile::open(KVSIM_SOURCE_DIR "/tests/golden/qkv-L15.safetensors");
  ASSERT_TRUE(original);
  const TemporaryFolder folder;
  const std::string path = folder.file("copy.safetensors");
  ASSERT_TRUE(write_safetensors(path, original->tensors(), original->metadata()));
  // The capture was written by another program with the same conventions: equal to the byte.
  EXPECT_EQ(content_of(path), content_of(original->path()));
}

TEST(SafetensorsWriter, ReplacesAFileEvenWhileItIsMapped) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const std::vector<Tensor> first = {{"a", Dtype::u8, {3}, bytes_of("old")}};
  ASSERT_TRUE(write_safetensors(path, first));
  const auto old = SafetensorsFile::open(path);
  ASSERT_TRUE(old);
  const std::vector<Tensor> second = {{"a", Dtype::u8, {3}, bytes_of("new")}};
  ASSERT_TRUE(write_safetensors(path, second));
  EXPECT_EQ(old->find("a")->bytes[0], std::byte{'o'});
  const auto fresh = SafetensorsFile::open(path);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->find("a")->bytes[0], std::byte{'n'});
}

TEST(SafetensorsWriter, FollowsASymbolicLink) {
  const TemporaryFolder folder;
  write_file(folder.file("target"), "old");
  std::filesystem::create_symlink(folder.file("target"), folder.file("link"));
  ASSERT_TRUE(write_safetensors(folder.file("link"), {}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(content_of(folder.file("target")), eight_bytes(8) + "{}      ");
}

TEST(SafetensorsWriter, RefusesWhatTheReaderWouldRefuse) {
  struct Case {
    std::vector<Tensor> tensors;
    std::vector<MetadataEntry> metadata;
    std::string message;
  };
  const Tensor good{"a", Dtype::u8, {1}, bytes_of("x")};
  const std::vector<Case> cases = {
      {{{"a", Dtype::f32, {2}, bytes_of("abcd")}},
       {},
       "tensor \"a\": 4 bytes given; accepted: 8 for F32 [2]"},
      {{{"a", Dtype::u8, {-1}, {}}},
       {},
       "tensor \"a\": shape [-1] of U8 has a negative size; accepted: sizes from 0"},
      {{good, good}, {}, "tensor \"a\" stands twice in the header; accepted: once"},
      {{{"\xff", Dtype::u8, {1}, bytes_of("x")}},
       {},
       "the text \"\\xff\" is not UTF-8; accepted: UTF-8"},
      {{}, {{"k", "\xc0\x80"}}, "the text \"\\xc0\\x80\" is not UTF-8; accepted: UTF-8"},
      {{}, {{"k", "1"}, {"k", "2"}}, "__metadata__ \"k\" stands twice; accepted: once"},
      {{},
       {{"k", std::string(2000000, 'x')}},
       "the header has a text or gap longer than 1048576 bytes at its byte 23; accepted: at most "
       "1048576"},
      {{{"__metadata__", Dtype::u8, {1}, bytes_of("x")}},
       {},
       "tensor \"__metadata__\" has the name of the metadata; accepted: any other name"}};
  const TemporaryFolder folder;
  for (const Case& row : cases) {
    const auto written = write_safetensors(folder.file("a"), row.tensors, row.metadata);
    ASSERT_FALSE(written) << row.message;
    EXPECT_EQ(written.error().kind, ErrorKind::usage);
    EXPECT_EQ(written.error().message, row.message);
    expect_one_line(written.error());
  }
  EXPECT_EQ(files_in(folder), 0U);
}

TEST(SafetensorsWriter, AFailureLeavesWhatStoodThere) {
  const TemporaryFolder folder;
  const std::vector<Tensor> tensors = {{"a", Dtype::u8, {1}, bytes_of("x")}};
  std::filesystem::create_directory(folder.file("folder"));
  for (const std::string& path :
       {folder.file("folder"), folder.file("nothing/a"), std::string("/dev/full"), std::string(),
        folder.file(std::string(300, 'n'))}) {
    const auto written = write_safetensors(path, tensors);
    ASSERT_FALSE(written) << path;
    EXPECT_EQ(written.error().kind, ErrorKind::file);
    expect_one_line(written.error());
    EXPECT_NE(written.error().message.find(": cannot write: "), std::string::npos);
  }
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(SafetensorsWriter, AWriteThatEndsHalfWayLeavesWhatStoodThere) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file(path, "old");
  // A limit on the size of files stands in for a full disk.
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {4096, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string data(10000, 'x');
  const std::vector<Tensor> tensors = {{"a", Dtype::u8, {10000}, bytes_of(data)}};
  const auto written = write_safetensors(path, tensors);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::file);
  EXPECT_NE(written.error().message.find(": cannot write: File too large"), std::string::npos);
  expect_one_line(written.error());
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(files_in(folder), 1U);
}

}  // namespace
}  // namespace kvsim
