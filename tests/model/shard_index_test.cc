// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/shard_index.h"

#include <gtest/gtest.h>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

TEST(ShardIndex, FilesAndTensorsAreSorted) {
  const auto index = parse_shard_index(
      R"({"metadata": {"total_size": 12}, "weight_map": {"b.weight": "2.safetensors",
          "a": "10.safetensors", "c": "2.safetensors"}})",
      "f");
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->files, std::vector<std::string>({"10.safetensors", "2.safetensors"}));
  ASSERT_EQ(index->entries.size(), 3U);
  EXPECT_EQ(index->entries[0].tensor, "a");
  EXPECT_EQ(index->entries[0].file, 0U);
  EXPECT_EQ(index->entries[1].tensor, "b.weight");
  EXPECT_EQ(index->entries[1].file, 1U);
  EXPECT_EQ(index->entries[2].file, 1U);
}

TEST(ShardIndex, RefusesByName) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& test : {
           Case{"", "is not JSON"},
           Case{"[]", "is no JSON object"},
           Case{"{}", "weight_map is missing"},
           Case{R"({"weight_map": []})", "weight_map is array"},
           Case{R"({"weight_map": {}})", "weight_map names 0 files; accepted: 1 to 1024"},
           Case{R"({"weight_map": {"a": 3}})", "tensor \"a\" stands in a value of type number"},
           Case{R"({"weight_map": {"a": 3.5}})", "tensor \"a\" stands in \"3.5\""},
           Case{R"({"weight_map": {"a": "x.bin"}})", "stands in \"x.bin\"; accepted: the name"},
           Case{R"({"weight_map": {"a": ".safetensors"}})", "stands in \".safetensors\""},
           Case{R"({"weight_map": {"a": "/x.safetensors"}})", "stands in \"/x.safetensors\""},
           Case{R"({"weight_map": {"a": "../x.safetensors"}})", "stands in \"../x"},
           Case{R"({"weight_map": {"a": "x\u0000.safetensors"}})", "stands in \"x\\x00"},
           Case{R"({"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}})",
                "key \"a\" stands twice"},
           Case{R"({"weight_map": {"a": "x.safetensors"}} 3)", "is not JSON"},
       }) {
    const auto index = parse_shard_index(test.text, "folder/index.json");
    ASSERT_FALSE(index) << test.text;
    EXPECT_EQ(index.error().kind, ErrorKind::file);
    test::expect_one_line(index.error());
    EXPECT_TRUE(index.error().message.starts_with("folder/index.json: "));
    EXPECT_NE(index.error().message.find(test.says), std::string::npos) << index.error().message;
  }
}

TEST(ShardIndex, Limits) {
  const auto map_of = [](std::size_t files) {
    std::string text = R"({"weight_map": {)";
    for (std::size_t i = 0; i < files; ++i) {
      if (i > 0) text += ',';
      text += "\"t" + std::to_string(i) + "\": \"" + std::to_string(i) + ".safetensors\"";
    }
    return text + "}}";
  };
  ASSERT_TRUE(parse_shard_index(map_of(ShardIndexLimits::files), "f"));
  const auto many = parse_shard_index(map_of(ShardIndexLimits::files + 1), "f");
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("names 1025 files; accepted: 1 to 1024"), std::string::npos);
  const std::string name(ShardIndexLimits::file_name_bytes - 12, 'n');
  EXPECT_TRUE(parse_shard_index(R"({"weight_map": {"a": ")" + name + R"(.safetensors"}})", "f"));
  EXPECT_FALSE(parse_shard_index(R"({"weight_map": {"a": "n)" + name + R"(.safetensors"}})", "f"));
  const auto large = parse_shard_index(std::string(ShardIndexLimits::bytes + 1, ' '), "f");
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("accepted: at most 16777216"), std::string::npos);
}

}  // namespace
}  // namespace kvsim
