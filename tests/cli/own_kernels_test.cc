// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The user's kernel file: what is written is read again, and nothing that is there is lost.
#include "cli/kernels/own_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OwnKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("own_kernels_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    path_ = (folder_ / "kvsim" / "kernels.toml").string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& text) const {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
  }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  /// The error of reading a file with this text.
  [[nodiscard]] std::string error_of(const std::string& written) const {
    write(written);
    const auto read = read_own_kernels(path_);
    return read ? "no error" : read.error().message;
  }

  fs::path folder_;
  std::string path_;
};

OwnKernel a_kernel(const std::string& name) {
  OwnKernel kernel;
  kernel.name = name;
  kernel.operation = "linear";
  kernel.backend = "plugin:./\"quoted\" \\ 'both' and ü";
  kernel.device = "a CPU";
  kernel.date = "2026-11-30";
  kernel.key = "backend=a; version=1";
  kernel.rows = 2;
  kernel.outputs = 3;
  kernel.terms = 64;
  kernel.order = "blocks(32)/lanes(8,1,join=halving)";
  kernel.product = Product::rounded;
  kernel.storage = softfloat::bfloat16;
  kernel.accumulator = softfloat::binary32;
  kernel.output = softfloat::binary16;
  kernel.outputs_checked = 10000;
  kernel.tree_sha256 = "0123abcd";
  kernel.exceptions = {"columns 8: sequential"};
  kernel.fingerprint = {{"backend", "a"}, {"cpu-model", "a CPU"}};
  return kernel;
}

OwnKernel a_layer(const std::string& name) {
  OwnKernel kernel = a_kernel(name);
  kernel.operation = "sdpa";
  kernel.attention = OwnAttention{
      .kernel = "h100-fa3",
      .shape = {.query_heads = 8, .kv_heads = 2, .query_len = 3, .kv_len = 400, .head_dim = 64},
      .attributes = {{"causal", "1"}, {"scale", "0.25"}},
      .walk = "KV blocks of 192, \"last\" to first"};
  return kernel;
}

TEST_F(OwnKernels, AreReadAsTheyWereWritten) {
  EXPECT_TRUE(read_own_kernels(path_)->empty());
  EXPECT_TRUE(read_own_kernels("")->empty());
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("first")));
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("second")));
  const auto read = read_own_kernels(path_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2);
  const OwnKernel expected = a_kernel("second");
  const OwnKernel& kernel = read->back();
  EXPECT_EQ(read->front().name, "first");
  EXPECT_EQ(kernel.name, expected.name);
  EXPECT_EQ(kernel.operation, expected.operation);
  EXPECT_EQ(kernel.backend, expected.backend);
  EXPECT_EQ(kernel.device, expected.device);
  EXPECT_EQ(kernel.date, expected.date);
  EXPECT_EQ(kernel.key, expected.key);
  EXPECT_EQ(kernel.rows, 2);
  EXPECT_EQ(kernel.outputs, 3);
  EXPECT_EQ(kernel.terms, 64);
  EXPECT_EQ(kernel.order, expected.order);
  EXPECT_EQ(kernel.product, Product::rounded);
  EXPECT_TRUE(kernel.storage == softfloat::bfloat16);
  EXPECT_TRUE(kernel.accumulator == softfloat::binary32);
  EXPECT_TRUE(kernel.output == softfloat::binary16);
  EXPECT_EQ(kernel.outputs_checked, 10000);
  EXPECT_EQ(kernel.tree_sha256, expected.tree_sha256);
  EXPECT_EQ(kernel.exceptions, expected.exceptions);
  EXPECT_EQ(kernel.fingerprint, expected.fingerprint);
}

TEST_F(OwnKernels, OfAttentionAreReadAsTheyWereWritten) {
  ASSERT_TRUE(add_own_kernel(path_, a_layer("first")));
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("second")));
  const auto read = read_own_kernels(path_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2);
  EXPECT_FALSE(read->back().attention);
  const OwnKernel& kernel = read->front();
  ASSERT_TRUE(kernel.attention);
  const OwnKernel expected = a_layer("first");
  EXPECT_EQ(kernel.attention->kernel, "h100-fa3");
  EXPECT_EQ(kernel.attention->shape, expected.attention->shape);
  EXPECT_EQ(kernel.attention->attributes, expected.attention->attributes);
  EXPECT_EQ(kernel.attention->walk, expected.attention->walk);
  EXPECT_TRUE(kernel.storage == softfloat::bfloat16);
  EXPECT_TRUE(kernel.output == softfloat::binary16);
  EXPECT_EQ(kernel.outputs_checked, 10000);
  EXPECT_EQ(kernel.tree_sha256, expected.tree_sha256);
}

TEST_F(OwnKernels, OfAttentionNameAKernelOfTheTable) {
  ASSERT_TRUE(add_own_kernel(path_, a_layer("one")));
  const std::string good = text();
  const auto with = [&](const std::string& old, const std::string& replacement) {
    std::string changed = good;
    changed.replace(changed.find(old), old.size(), replacement);
    return error_of(changed);
  };
  EXPECT_EQ(error_of(good), "no error");
  EXPECT_THAT(with("\"h100-fa3\"", "\"h100-fa9\""), HasSubstr("a kernel of attention"));
  EXPECT_THAT(with("heads = 8", "heads = 0"), HasSubstr("heads of a kernel is something else"));
  EXPECT_THAT(with("kv_len = 400\n", ""), HasSubstr("kv_len of a kernel is missing"));
  EXPECT_THAT(with("kv_heads = 2", "kv_heads = 3"), HasSubstr("a divisor of heads"));
  EXPECT_THAT(with("\"causal=1\"", "\"causal\""), HasSubstr("KEY=VALUE"));
}

TEST_F(OwnKernels, KeepWhatIsThereToTheLetter) {
  write("# mine\nother = 3");
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("one")));
  const std::string before = text();
  EXPECT_EQ(before.find("# mine\nother = 3\n\n[[kernel]]\n"), 0);
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("two")));
  EXPECT_EQ(text().find(before), 0);
}

TEST_F(OwnKernels, RefuseNames) {
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("one")));
  const std::string before = text();
  for (const std::string name : {"one", "h100-fa3", "", "-a", "A", "a b", "ü"}) {
    const auto added = add_own_kernel(path_, a_kernel(name));
    ASSERT_FALSE(added) << name;
    EXPECT_EQ(added.error().kind, ErrorKind::usage) << name;
  }
  EXPECT_FALSE(add_own_kernel(path_, a_kernel(std::string(65, 'a'))));
  EXPECT_TRUE(check_own_kernel_name(path_, std::string(64, 'a')));
  EXPECT_EQ(text(), before);
}

TEST_F(OwnKernels, SayWhatIsWrongInAFile) {
  ASSERT_TRUE(add_own_kernel(path_, a_kernel("one")));
  const std::string good = text();
  const auto with = [&](const std::string& old, const std::string& replacement) {
    std::string changed = good;
    changed.replace(changed.find(old), old.size(), replacement);
    return error_of(changed);
  };
  EXPECT_THAT(with("[[kernel]]", "[[kernel]"), HasSubstr("line 1"));
  EXPECT_THAT(with("m = 2", "m = 0"), HasSubstr("line 8: m of a kernel is something else"));
  EXPECT_THAT(with("m = 2", "m = 2.0"), HasSubstr("accepted: 1 to 1048576"));
  EXPECT_THAT(with("m = 2\n", ""), HasSubstr("m of a kernel is missing"));
  EXPECT_THAT(with("date = 2026-11-30", "date = '2026-11-30'"), HasSubstr("a date"));
  EXPECT_THAT(with("\"blocks(32)", "\"blocs(32)"), HasSubstr("order"));
  EXPECT_THAT(with("\"rounded\"", "\"round\""), HasSubstr("fused, rounded or exact"));
  EXPECT_THAT(with("\"bfloat16\"", "\"bfloat17\""), HasSubstr("a format"));
  EXPECT_THAT(error_of(good + good), HasSubstr("a second kernel is called one"));
  EXPECT_THAT(error_of("kernel = 3\n"), HasSubstr("kernel is no list of tables"));
  // And such a file is not written to.
  const std::string before = text();
  EXPECT_FALSE(add_own_kernel(path_, a_kernel("two")));
  EXPECT_EQ(text(), before);
}

TEST_F(OwnKernels, TellWhatCannotBeRead) {
  fs::create_directories(path_);
  const auto read = read_own_kernels(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::file);
  EXPECT_EQ(add_own_kernel("", a_kernel("one")).error().kind, ErrorKind::file);
}

}  // namespace
}  // namespace kvsim
