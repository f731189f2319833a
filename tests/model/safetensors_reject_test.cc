// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// One row per way in which a file can be wrong: the message in full, so that it names the thing,
// the value and what is accepted.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/safetensors.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::eight_bytes;
using test::expect_one_line;
using test::safetensors;

struct Case {
  std::string content;
  std::string message;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& row : cases) {
    const auto file = SafetensorsFile::parse(bytes_of(row.content), "f");
    ASSERT_FALSE(file) << "accepted, though: " << row.message;
    EXPECT_EQ(file.error().kind, ErrorKind::file);
    EXPECT_EQ(file.error().message, "f: " + row.message);
    expect_one_line(file.error());
  }
}

std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                std::string_view data) {
  std::string header = R"({"a":{"dtype":)";
  header.append(dtype).append(R"(,"shape":)").append(shape);
  header.append(R"(,"data_offsets":)").append(offsets).append("}}");
  return safetensors(header, data);
}

TEST(SafetensorsReject, Lengths) {
  const std::string accepted = "; accepted: from 2 to what follows, at most 100000000";
  expect_refused({
      {"", "has 0 bytes; accepted: a safetensors file, which has at least 10"},
      {"abcdefg", "has 7 bytes; accepted: a safetensors file, which has at least 10"},
      {eight_bytes(0), "the header length is 0 and 0 bytes follow" + accepted},
      {eight_bytes(3) + "{}", "the header length is 3 and 2 bytes follow" + accepted},
      {eight_bytes(~std::uint64_t{0}) + "{}",
       "the header length is 18446744073709551615 and 2 bytes follow" + accepted},
      {eight_bytes(100000001) + std::string(100000001, ' '),
       "the header length is 100000001 and 100000001 bytes follow" + accepted},
  });
}

TEST(SafetensorsReject, Json) {
  const std::string accepted = "; accepted: one JSON object in UTF-8";
  expect_refused({
      {safetensors("[]"), "the header begins with \"[\"; accepted: \"{\""},
      {safetensors(" {}"), "the header begins with \" \"; accepted: \"{\""},
      {safetensors("\xef\xbb\xbf{}"), "the header begins with \"\\xef\"; accepted: \"{\""},
      {safetensors("{}{}"), "the header is no JSON at its byte 3, near \"{}{\"" + accepted},
      {safetensors("{\"a\":"),
       "the header is no JSON at its byte 6, near \"\\x22a\\x22:\"" + accepted},
      {safetensors(std::string("{}\0 ", 4)), "the header has a zero byte at its byte 3" + accepted},
      {safetensors("{\"\xff\":1}"),
       "the header is no JSON at its byte 3, near \"\\x22\\xff\"" + accepted},
      {safetensors("{\"a\":" + std::string(100000, '[')),
       "tensor \"a\" is an array; accepted: an object with dtype, shape and data_offsets"},
      {safetensors("{\"" + std::string(2000000, 'a') + "\":1}"),
       "the header has a text or gap longer than 1048576 bytes at its byte 3; accepted: at most "
       "1048576"},
      {safetensors("{" + std::string(2000000, '\n') + "}"),
       "the header has a text or gap longer than 1048576 bytes at its byte 1; accepted: at most "
       "1048576"},
  });
}

TEST(SafetensorsReject, Structure) {
  const std::string object = "; accepted: an object with dtype, shape and data_offsets";
  expect_refused({
      {safetensors(R"({"a":1})"), "tensor \"a\" is the number 1" + object},
      {safetensors(R"({"a":-1})"), "tensor \"a\" is the number -1" + object},
      {safetensors(R"({"a":1.5})"), "tensor \"a\" is the number \"1.5\"" + object},
      {safetensors(R"({"a":null})"), "tensor \"a\" is null" + object},
      {safetensors(R"({"a":true})"), "tensor \"a\" is true" + object},
      {safetensors(R"({"a":"b"})"), "tensor \"a\" is the text \"b\"" + object},
      {safetensors(R"({"a":{}})"),
       "tensor \"a\": dtype is missing; accepted: dtype, shape and data_offsets"},
      {safetensors(R"({"a":{"dtype":"U8","shape":[]}})"),
       "tensor \"a\": data_offsets is missing; accepted: dtype, shape and data_offsets"},
      {safetensors(R"({"a":{"type":"U8"}})"),
       "tensor \"a\": key \"type\" is not known; accepted: dtype, shape, data_offsets"},
      {safetensors(R"({"a":{"dtype":"U8","dtype":"U8"}})"),
       "tensor \"a\": dtype stands twice; accepted: once"},
      {safetensors(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                   R"("\u0061":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
                   "xy"),
       "tensor \"a\" stands twice in the header; accepted: once"},
      {safetensors(R"({"__metadata__":{},"__metadata__":{}})"),
       "__metadata__ stands twice in the header; accepted: once"},
      {safetensors(R"({"__metadata__":{"a":"1","a":"2"}})"),
       "__metadata__ \"a\" stands twice; accepted: once"},
      {safetensors(R"({"__metadata__":{"a":1}})"),
       "__metadata__ \"a\" is the number 1; accepted: a text"},
      {safetensors(R"({"__metadata__":{"a":{}}})"),
       "__metadata__ \"a\" is an object; accepted: a text"},
      {safetensors(R"({"__metadata__":[]})"),
       "__metadata__ is an array; accepted: an object of texts"},
  });
}

TEST(SafetensorsReject, DtypeAndShape) {
  const std::string sizes = "; accepted: whole numbers from 0 to 9223372036854775807";
  expect_refused({
      {one(R"("F7")", "[1]", "[0,1]", "x"),
       "tensor \"a\": dtype \"F7\" is not known; accepted: BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, "
       "F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, "
       "C64, F64, I64, U64"},
      {one("3", "[1]", "[0,1]", "x"), "tensor \"a\": dtype is the number 3; accepted: a text"},
      {one(R"(["U8"])", "[1]", "[0,1]", "x"), "tensor \"a\": dtype is an array; accepted: a text"},
      {one(R"("U8")", "1", "[0,1]", "x"),
       "tensor \"a\": shape is the number 1; accepted: an array of sizes"},
      {one(R"("U8")", "[-1]", "[0,1]", "x"), "tensor \"a\": shape holds the number -1" + sizes},
      {one(R"("U8")", "[1.0]", "[0,1]", "x"),
       "tensor \"a\": shape holds the number \"1.0\"" + sizes},
      {one(R"("U8")", "[9223372036854775808]", "[0,1]", "x"),
       "tensor \"a\": shape holds the number 9223372036854775808" + sizes},
      {one(R"("U8")", "[18446744073709551616]", "[0,1]", "x"),
       "tensor \"a\": shape holds the number \"18446744073709551616\"" + sizes},
      {one(R"("U8")", "[[1]]", "[0,1]", "x"), "tensor \"a\": shape holds an array" + sizes},
      {one(R"("U8")", R"(["1"])", "[0,1]", "x"),
       "tensor \"a\": shape holds the text \"1\"" + sizes},
      {one(R"("U8")", "[1,1,1,1,1,1,1,1,1]", "[0,1]", "x"),
       "tensor \"a\": shape has more than 8 sizes; accepted: at most 8"},
      {one(R"("F32")", "[4294967296,4294967296]", "[0,0]", ""),
       "tensor \"a\": shape [4294967296, 4294967296] of F32 is too large; accepted: at most 2^63 - "
       "1 "
       "bits"},
      {one(R"("F32")", "[0,4294967296,4294967296]", "[0,0]", ""),
       "tensor \"a\": shape [0, 4294967296, 4294967296] of F32 is too large; accepted: at most "
       "2^63 "
       "- 1 bits"},
      {one(R"("F4")", "[3]", "[0,2]", "xy"),
       "tensor \"a\": shape [3] of F4 has 12 bits; accepted: a multiple of 8"},
  });
}

TEST(SafetensorsReject, Offsets) {
  const auto two = [](std::string_view first, std::string_view second, std::string_view data) {
    std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)";
    header.append(first).append(R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)");
    return safetensors(header.append(second).append("}}"), data);
  };
  expect_refused({
      {one(R"("U8")", "[1]", "1", "x"),
       "tensor \"a\": data_offsets is the number 1; accepted: an array of two offsets"},
      {one(R"("U8")", "[1]", "[0]", "x"),
       "tensor \"a\": data_offsets has 1 of 2 numbers; accepted: begin and end"},
      {one(R"("U8")", "[1]", "[0,1,2]", "x"),
       "tensor \"a\": data_offsets has more than 2 numbers; accepted: 2"},
      {one(R"("U8")", "[1]", "[1,0]", "x"),
       "tensor \"a\": data_offsets [1, 0] begin after their end; accepted: begin at most end"},
      {one(R"("U8")", "[4]", "[0,4]", "abc"),
       "tensor \"a\": data_offsets [0, 4] pass the end of the data; accepted: at most 3 (is the "
       "file cut off?)"},
      {one(R"("U8")", "[1]", "[1,2]", "xy"),
       "tensor \"a\": data_offsets [1, 2] leave a gap; accepted: begin 0"},
      {two("[0,2]", "[1,3]", "xyz"),
       "tensor \"b\": data_offsets [1, 3] overlap another tensor; accepted: begin 2"},
      {two("[0,2]", "[0,2]", "xy"),
       "tensor \"b\": data_offsets [0, 2] overlap another tensor; accepted: begin 2"},
      {two("[3,5]", "[0,2]", "abcde"),
       "tensor \"a\": data_offsets [3, 5] leave a gap; accepted: begin 2"},
      {one(R"("F32")", "[2]", "[0,4]", "abcd"),
       "tensor \"a\": data_offsets [0, 4] hold 4 bytes; accepted: 8 for F32 [2]"},
      {one(R"("U8")", "[1]", "[0,1]", "xy"),
       "the data has 2 bytes; accepted: 1, where the last tensor ends"},
      {one(R"("U8")", "[1]", "[9223372036854775807,9223372036854775807]", "x"),
       "tensor \"a\": data_offsets [9223372036854775807, 9223372036854775807] pass the end of the "
       "data; accepted: at most 1 (is the file cut off?)"},
      {safetensors("{}", "x"), "the data has 1 bytes; accepted: 0, where the last tensor ends"},
  });
}

TEST(SafetensorsReject, HostileNamesAreEscapedAndCut) {
  expect_refused({
      {safetensors("{\"\\n\\u001b[2J\u202e\":1}"),
       R"(tensor "\x0a\x1b[2J\xe2\x80\xae" is the number 1; )"
       "accepted: an object with dtype, shape and data_offsets"},
      {safetensors("{\"" + std::string(5000, 'n') + "\":1}"),
       "tensor \"" + std::string(64, 'n') +
           "\"... (5000 bytes) is the number 1; accepted: an object with dtype, shape and "
           "data_offsets"},
  });
}

TEST(SafetensorsReject, PathsAreEscaped) {
  const auto file = SafetensorsFile::open("no\nsuch");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message.substr(0, 10), "no\\x0asuch");
}

}  // namespace
}  // namespace kvsim
