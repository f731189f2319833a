// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::expect_one_line;
using test::safetensors;
using test::TemporaryFolder;
using test::write_file;

const std::string golden = KVSIM_SOURCE_DIR "/tests/golden/qkv-L15.safetensors";

TEST(Safetensors, ReadsTheCapture) {
  const auto file = SafetensorsFile::open(golden);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->path(), golden);
  ASSERT_EQ(file->tensors().size(), 3U);
  // The figures are those of the header as text and of single bytes of the file.
  EXPECT_EQ(file->tensors()[0].name, "k");
  EXPECT_EQ(file->tensors()[1].name, "q");
  EXPECT_EQ(file->tensors()[2].name, "v");
  const Tensor* q = file->find("q");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->dtype, Dtype::f16);
  EXPECT_EQ(q->shape, (std::vector<std::int64_t>{9, 256, 64}));
  EXPECT_EQ(q->bytes.size(), 393216U - 98304U);
  EXPECT_EQ(file->find("k")->shape, (std::vector<std::int64_t>{3, 256, 64}));
  EXPECT_EQ(file->find("o"), nullptr);
  EXPECT_EQ(file->find(""), nullptr);
  ASSERT_EQ(file->metadata().size(), 7U);
  EXPECT_EQ(file->metadata()[0].key, "rope");
  EXPECT_EQ(file->metadata()[0].text, "applied");

  std::ifstream stream(golden, std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::string expected = whole.substr(8 + 536 + 98304, 393216 - 98304);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(q->bytes.data()), q->bytes.size()), expected);
}

TEST(Safetensors, StaysValidWhenMoved) {
  auto opened = SafetensorsFile::open(golden);
  ASSERT_TRUE(opened);
  const std::byte first = opened->find("v")->bytes[0];
  const SafetensorsFile moved = std::move(*opened);
  ASSERT_NE(moved.find("v"), nullptr);
  EXPECT_EQ(moved.find("v")->bytes[0], first);
}

TEST(Safetensors, TensorsStandInTheOrderOfTheirData) {
  const std::string text = safetensors(R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
                                       R"("e":{"dtype":"F32","shape":[0],"data_offsets":[1,1]},)"
                                       R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
                                       "xyz");
  const auto file = SafetensorsFile::parse(bytes_of(text));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 3U);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[1].name, "e");
  EXPECT_EQ(file->tensors()[2].name, "b");
  EXPECT_TRUE(file->find("a")->shape.empty());
  EXPECT_EQ(file->find("a")->bytes[0], std::byte{'x'});
  EXPECT_EQ(file->find("b")->bytes[1], std::byte{'z'});
  EXPECT_TRUE(file->find("e")->bytes.empty());
}

TEST(Safetensors, AcceptsEveryDtypeOfTheFormat) {
  struct Case {
    const char* name;
    int bytes_of_eight;
  };
  const std::vector<Case> cases = {
      {"BOOL", 8}, {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"I16", 16}, {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32}, {"U32", 32},        {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64}, {"U64", 64}};
  EXPECT_EQ(cases.size(), dtypes().size());
  for (const Case& row : cases) {
    const std::string size = std::to_string(row.bytes_of_eight);
    const std::string text =
        safetensors("{\"a\":{\"dtype\":\"" + std::string(row.name) +
                        "\",\"shape\":[2,4],\"data_offsets\":[0," + size + "]}}",
                    std::string(static_cast<std::size_t>(row.bytes_of_eight), 'x'));
    const auto file = SafetensorsFile::parse(bytes_of(text));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(dtype_info(file->find("a")->dtype).name, row.name);
  }
}

TEST(Safetensors, AcceptsPaddingBlanksAndEscapedNames) {
  const std::string text = safetensors(
      "{ \"\\u0061\\n\" : {\"shape\":[1], \"data_offsets\":[0,1],\n\"dtype\":\"U8\"} }      ", "x");
  const auto file = SafetensorsFile::parse(bytes_of(text));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_NE(file->find("a\n"), nullptr);
}

TEST(Safetensors, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  write_file(folder.file("empty"), "");
  struct Case {
    std::string path;
    std::string message;
  };
  const std::string accepted = "; accepted: a readable regular file with content";
  const std::string nothing = folder.file("nothing");
  const std::vector<Case> cases = {
      {folder.path().string(), folder.path().string() + ": is a directory" + accepted},
      {folder.file("empty"), folder.file("empty") + ": is empty" + accepted},
      {nothing, nothing + ": cannot open: No such file or directory" + accepted},
      {pipe, pipe + ": is a pipe" + accepted},
      {"/dev/zero", "/dev/zero: is a device" + accepted},
      {"/dev/null", "/dev/null: is a device" + accepted},
      {"", "(empty path): names no file" + accepted},
      {std::string("a\0b", 3), "a\\x00b: holds a zero byte" + accepted},
      {golden + "/x", golden + "/x: cannot open: Not a directory" + accepted}};
  for (const Case& row : cases) {
    const auto file = SafetensorsFile::open(row.path);
    ASSERT_FALSE(file) << row.path;
    EXPECT_EQ(file.error().kind, ErrorKind::file);
    EXPECT_EQ(file.error().message, row.message);
    expect_one_line(file.error());
  }
}

TEST(Safetensors, RefusesAnUnreadableFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("secret");
  write_file(path, safetensors("{}"));
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const auto file = SafetensorsFile::open(path);
  if (::geteuid() == 0) {
    EXPECT_TRUE(file);  // root reads every file
    return;
  }
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("cannot open: Permission denied"), std::string::npos);
}

TEST(Safetensors, EveryCutOfTheCaptureIsRefused) {
  std::ifstream stream(golden, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  const auto refused = [&](std::size_t length) {
    const std::string cut = whole.substr(0, length);
    const auto file = SafetensorsFile::parse(bytes_of(cut));
    if (file) return false;
    expect_one_line(file.error());
    return file.error().kind == ErrorKind::file;
  };
  for (std::size_t length = 0; length < 1000; ++length) EXPECT_TRUE(refused(length)) << length;
  for (std::size_t length = 1000; length < whole.size(); length += 10007) {
    EXPECT_TRUE(refused(length)) << length;
  }
  EXPECT_TRUE(refused(whole.size() - 1));
  EXPECT_FALSE(SafetensorsFile::parse(bytes_of(whole + "x")));
}

}  // namespace
}  // namespace kvsim
