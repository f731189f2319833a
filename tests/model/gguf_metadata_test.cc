// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_metadata.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/gguf_bytes.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::eight_bytes;
using test::four_bytes;
using test::gguf;
using test::gguf_entry;
using test::gguf_text;

TEST(GgufMetadata, EveryType) {
  using std::string_literals::operator""s;
  const std::string file = gguf({
      gguf_entry("u8", GgufType::uint8, "\xff"),
      gguf_entry("i8", GgufType::int8, "\xff"),
      gguf_entry("u16", GgufType::uint16, "\xfe\xff"),
      gguf_entry("i16", GgufType::int16, "\xfe\xff"),
      gguf_entry("u32", GgufType::uint32, four_bytes(0xfffffffd)),
      gguf_entry("i32", GgufType::int32, four_bytes(0xfffffffd)),
      gguf_entry("f32", GgufType::float32, "\0\0\xc0\x3f"s),
      gguf_entry("yes", GgufType::boolean, "\x01"),
      gguf_entry("text", GgufType::text, gguf_text("a\0b"s)),
      gguf_entry("u64", GgufType::uint64, eight_bytes(~std::uint64_t{0})),
      gguf_entry("i64", GgufType::int64, eight_bytes(~std::uint64_t{0})),
      gguf_entry("f64", GgufType::float64, "\0\0\0\0\0\0\xf8\xbf"s),
      test::gguf_texts("texts", {"", "bc"}),
      test::gguf_int32s("ints", {1, -1}),
  });
  const auto metadata = GgufMetadata::parse(bytes_of(file), "f");
  ASSERT_TRUE(metadata) << metadata.error().message;
  const std::vector<GgufValue> expected = {std::uint64_t{255},
                                           std::int64_t{-1},
                                           std::uint64_t{65534},
                                           std::int64_t{-2},
                                           std::uint64_t{4294967293},
                                           std::int64_t{-3},
                                           1.5,
                                           true,
                                           std::string_view("a\0b", 3),
                                           ~std::uint64_t{0},
                                           std::int64_t{-1},
                                           -1.5};
  ASSERT_EQ(metadata->entries().size(), expected.size() + 2);
  for (std::size_t index = 0; index < expected.size(); ++index) {
    const GgufValue& value = metadata->entries()[index].value;
    ASSERT_EQ(value.index(), expected[index].index()) << index;
    std::visit(
        [&](const auto& number) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(number)>, GgufArray>) {
            EXPECT_EQ(number, std::get<std::decay_t<decltype(number)>>(value)) << index;
          }
        },
        expected[index]);
  }
  const auto texts = metadata->array("texts", GgufType::text);
  ASSERT_TRUE(texts);
  EXPECT_EQ((*texts)->texts, (std::vector<std::string_view>{"", "bc"}));
  const auto ints = metadata->array("ints", GgufType::int32);
  ASSERT_TRUE(ints);
  EXPECT_EQ((*ints)->numbers.size(), 8U);
  EXPECT_EQ(metadata->whole("i8").value(), -1);
  EXPECT_EQ(metadata->boolean("yes").value(), true);
  EXPECT_EQ(metadata->text("none").value(), std::nullopt);
  EXPECT_EQ(metadata->array("none", GgufType::text).value(), nullptr);
}

struct Case {
  std::string content;
  std::string message;
};

TEST(GgufMetadata, Refused) {
  const auto head = [](std::uint64_t tensors, std::uint64_t entries) {
    return "GGUF" + four_bytes(3) + eight_bytes(tensors) + eight_bytes(entries);
  };
  const std::string limits = "; accepted: at most 1048576 and 65536";
  const std::vector<Case> cases = {
      {"", "the GGUF header: needs 4 bytes and 0 follow; accepted: a whole file"},
      {"GGML....", "the GGUF header: begins with \"GGML\"; accepted: \"GGUF\""},
      {"GGUF" + four_bytes(1), "the GGUF header: version 1; accepted: 2 and 3, little-endian"},
      {"GGUF" + four_bytes(0x03000000),
       "the GGUF header: version 50331648; accepted: 2 and 3, little-endian"},
      {"GGUF" + four_bytes(3) + "1234567",
       "the GGUF header: needs 8 bytes and 7 follow; accepted: a whole file"},
      {head(0, 65537), "the GGUF header: 0 tensors and 65537 key-values" + limits},
      {head(1048577, 0), "the GGUF header: 1048577 tensors and 0 key-values" + limits},
      {head(0, 1), "key-value 1 of 1: needs 8 bytes and 0 follow; accepted: a whole file"},
      {head(0, 1) + eight_bytes(65536),
       "key-value 1 of 1: a text of 65536 bytes; accepted: at most 65535"},
      {head(0, 1) + eight_bytes(5) + "abc",
       "key-value 1 of 1: needs 5 bytes and 3 follow; accepted: a whole file"},
      {head(0, 1) + gguf_text("a\n") + four_bytes(13),
       "key \"a\\x0a\": type 13 is not known; accepted: 0 to 12"},
      {gguf({gguf_entry("b", GgufType::boolean, "\x02")}),
       "key \"b\": bool is 2; accepted: 0 or 1"},
      {gguf({gguf_entry("t", GgufType::text, eight_bytes(~std::uint64_t{0}))}),
       "key \"t\": a text of 18446744073709551615 bytes; accepted: at most 16777216"},
      {gguf({gguf_entry("a", GgufType::array, four_bytes(9) + eight_bytes(0))}),
       "key \"a\": an array in an array; accepted: arrays of numbers or strings"},
      {gguf({gguf_entry("a", GgufType::array, four_bytes(8) + eight_bytes(4194305))}),
       "key \"a\": an array of 4194305 items; accepted: at most 4194304"},
      {gguf({gguf_entry("a", GgufType::array, four_bytes(10) + eight_bytes(4194304))}),
       "key \"a\": needs 33554432 bytes and 0 follow; accepted: a whole file"},
      {gguf({gguf_entry("a", GgufType::uint8, "x"), gguf_entry("a", GgufType::uint8, "x")}),
       "key \"a\" stands twice; accepted: once"},
  };
  for (const Case& row : cases) {
    const auto metadata = GgufMetadata::parse(bytes_of(row.content), "f");
    ASSERT_FALSE(metadata) << "accepted, though: " << row.message;
    EXPECT_EQ(metadata.error().message, "f: " + row.message);
    EXPECT_EQ(metadata.error().kind, ErrorKind::file);
    test::expect_one_line(metadata.error());
  }
}

TEST(GgufMetadata, WrongTypes) {
  const std::string file =
      gguf({gguf_entry("n", GgufType::uint64, eight_bytes(std::uint64_t{1} << 63U)),
            gguf_entry("t", GgufType::text, gguf_text("x")), test::gguf_int32s("i", {1})});
  const auto metadata = GgufMetadata::parse(bytes_of(file), "f");
  ASSERT_TRUE(metadata) << metadata.error().message;
  EXPECT_EQ(metadata->whole("n").error().message,
            "f: key \"n\" has type uint64; accepted: a whole number of at most 2^63 - 1");
  EXPECT_EQ(metadata->boolean("t").error().message, "f: key \"t\" has type string; accepted: bool");
  EXPECT_EQ(metadata->text("i").error().message, "f: key \"i\" has type array; accepted: string");
  EXPECT_EQ(metadata->array("t", GgufType::text).error().message,
            "f: key \"t\" has type string; accepted: array of string");
  EXPECT_EQ(metadata->array("i", GgufType::text).error().message,
            "f: key \"i\" is an array of int32; accepted: of string");
}

}  // namespace
}  // namespace kvsim
