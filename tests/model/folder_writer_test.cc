// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/folder_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

class FolderWriterTest : public testing::Test {
 protected:
  [[nodiscard]] std::string target() const { return (root_ / "out").string(); }

  test::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(FolderWriterTest, AppearsWhole) {
  auto writer = FolderWriter::make(target() + "/");
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(writer->write_file("a", "one"));
  ASSERT_TRUE(writer->begin_file("b"));
  ASSERT_TRUE(writer->write(std::as_bytes(std::span(std::string_view("tw")))));
  ASSERT_TRUE(writer->write(std::as_bytes(std::span(std::string_view("o")))));
  EXPECT_FALSE(fs::exists(target()));
  ASSERT_TRUE(writer->finish());
  std::ifstream file(target() + "/b");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(target()), {}), 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), {}), 1);
}

TEST_F(FolderWriterTest, LeavesNothingBehind) {
  {
    auto writer = FolderWriter::make(target());
    ASSERT_TRUE(writer && writer->write_file("a", "one"));
    auto moved = std::move(*writer);
    EXPECT_TRUE(fs::exists(moved.partial()));
  }
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(FolderWriterTest, RefusesWhatStands) {
  fs::create_directories(target());  // even an empty folder
  const auto writer = FolderWriter::make(target());
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::file);
  EXPECT_NE(writer.error().message.find("exists already"), std::string::npos);
  fs::remove(target());
  fs::create_symlink("nowhere", target());
  EXPECT_FALSE(FolderWriter::make(target()));
  EXPECT_FALSE(FolderWriter::make(""));
  EXPECT_FALSE(FolderWriter::make((root_ / "no/such/folder").string()));
}

TEST_F(FolderWriterTest, OneAtATimeAndCleansUpAfterAKilledOne) {
  fs::create_directories(target() + ".partial");
  std::ofstream(target() + ".partial/half") << "x";
  auto writer = FolderWriter::make(target());
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_TRUE(fs::is_empty(writer->partial()));
  const auto second = FolderWriter::make(target());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another program"), std::string::npos);
}

}  // namespace
}  // namespace kvsim
