// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "model/safetensors_writer.h"
#include "tests/fuzz/cases.h"
#include "tests/model/test_file.h"

namespace kvsim::fuzz {
namespace {

FlipCase random_case(CaseShape shape, const softfloat::Format& storage) {
  shape.storage = storage;
  Random random({7, 1, 0});
  return ValueFitter(storage).random_case(shape, random);
}

TEST(FlipCase, ReadsBackWhatItWrites) {
  for (const softfloat::Format& storage :
       {softfloat::binary16, softfloat::bfloat16, softfloat::binary32}) {
    const FlipCase sum =
        random_case(sum_shape(9, "split(2)/lanes(2,1)", "pairwise", softfloat::binary32), storage);
    const auto read = parse_case(to_text(sum));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, sum);
  }
  const FlipCase attention = random_case(attention_shape(8, 5, "a100-fa2", 3), softfloat::bfloat16);
  const auto read = parse_case(to_text(attention));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, attention);
}

TEST(FlipCase, TextIsAsDocumented) {
  CaseShape shape = sum_shape(2, "sequential", "reverse", softfloat::binary16);
  FlipCase flip_case = empty_case(shape);
  flip_case[CaseTensor::state] = {1.5F, -0.25F};
  flip_case[CaseTensor::tokens] = {0.0F, 2.0F, -1.0F, 0.5F};
  EXPECT_EQ(to_text(flip_case),
            "kvsim flip case 1\nkind sum\nstorage binary16\naccumulate binary16\nproduct rounded\n"
            "terms 2\non sequential\noff reverse\nstate\n0x1.8p+0 -0x1p-2\ntokens\n"
            "0x0p+0 0x1p+1\n-0x1p+0 0x1p-1\nend\n");
  // A case of a flip has no line for that.
  CaseShape tie_shape = shape;
  tie_shape.target = Target::tie;
  FlipCase tie = flip_case;
  tie.shape = tie_shape;
  EXPECT_EQ(to_text(tie).substr(0, 38), "kvsim flip case 1\ntarget tie\nkind sum\n");
  const auto tie_read = parse_case(to_text(tie));
  ASSERT_TRUE(tie_read);
  EXPECT_EQ(*tie_read, tie);
  const auto commented = parse_case("# found by hand\n\n" + to_text(flip_case));
  ASSERT_TRUE(commented);
  EXPECT_EQ(*commented, flip_case);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

// Each names the line and what is accepted there, in one line, and repeats no control characters.
TEST(FlipCase, RefusesWhatIsNoCase) {
  const std::string sum = to_text(random_case(
      sum_shape(3, "sequential", "pairwise", softfloat::binary32), softfloat::binary16));
  const std::string attention =
      to_text(random_case(attention_shape(2, 2, "a100-fa2", 0), softfloat::binary16));
  const std::vector<std::pair<std::string, std::string>> hostile{
      {"", "line 1: the text ends where kvsim flip case 1 is accepted"},
      {"kvsim flip case 2\n", "line 1: 'kvsim flip case 2' stands where kvsim flip case 1"},
      {"\x1b[31m\n", "line 1: '?[31m' stands where"},
      {replaced(sum, "kind sum", "kind product"),
       "line 2: 'product' stands where sum or attention"},
      {replaced(sum, "kind sum", "target flop\nkind sum"),
       "line 2: 'flop' stands where flip, divergence, kl, bound, tie, nan is accepted"},
      {replaced(sum, "binary16", "binary17"),
       "line 3: 'binary17' stands where the name of a format"},
      {replaced(sum, "binary16", "binary64"),
       "storage binary64: formats of at most 32 bits are accepted"},
      {replaced(sum, "terms 3", "terms 0"), "terms 0: 1 to 65536 are accepted"},
      {replaced(sum, "terms 3", "terms 99999999999999999999"), "stands where a number up to 65536"},
      {replaced(sum, "terms 3", "terms 65537"), "terms 65537: 1 to 65536 are accepted"},
      {replaced(sum, "terms 3", "terms 4"), "stands where a row of 4 numbers of state"},
      {replaced(sum, "terms 3", "terms 2"), "stands where a row of 2 numbers of state"},
      {replaced(sum, "on sequential", "on sideways"), "line 7: "},
      {replaced(sum, "on sequential", "on perm(1,0)"), "perm"},
      {replaced(sum, "state\n", "state\n0x1p+0 nan 0x1p+0\n"),
       "'nan' stands where a finite number"},
      {replaced(sum, "state\n", "state\n0x1p+0 1e9 0x1p+0\n"),
       "'1e9' stands where a finite number"},
      {replaced(sum, "state\n", "state\n0.1 0 0\n"), "'0.1' stands where a finite number"},
      {replaced(sum, "end\n", ""), "the text ends where end is accepted"},
      {sum + "more\n", "'more' stands where nothing is accepted"},
      {replaced(attention, "query-heads 2", "query-heads 3\nkv-heads 2\n#"), "stands where"},
      {replaced(attention, "head-dim 2", "head-dim -1"), "head-dim -1: 1 to 65536 are accepted"},
      {replaced(attention, "head-dim 2", "head-dim 65536\nkv-len 65536\n#"), "stands where"},
      {replaced(attention, "kv-len 2", "kv-len 65536"), "'v' stands where a finite number"},
      {replaced(attention, "on a100-fa2", "on no-such"), "attention kernel 'no-such': unknown"},
      {replaced(attention, "decode", "encode"), "KERNEL decode|prefill [splits N]"},
      {replaced(attention, "decode", "decode splits 9999"), "splits 9999: 0 to 4096"},
  };
  for (const auto& [text, message] : hostile) {
    const auto read = parse_case(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(message), std::string::npos)
        << read.error().message << "\nwanted: " << message;
    EXPECT_EQ(read.error().message.find_first_of("\n\x1b"), std::string::npos);
  }
}

TEST(FlipCase, RefusesTooManyNumbersBeforeItTakesMemory) {
  CaseShape shape = attention_shape(65536, 65536, "a100-fa2", 0);
  const auto checked = check_shape(shape);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("at most 4194304 are accepted"), std::string::npos);
}

// Every number of a random case is within the measured range, finite and not subnormal.
TEST(ValueFitter, KeepsNumbersWithinTheRange) {
  const ValueFitter fitter(softfloat::binary16);
  EXPECT_EQ(fitter.fit(CaseTensor::v, 1e30), 10.8515625F);
  EXPECT_EQ(fitter.fit(CaseTensor::v, -1e30), -10.8515625F);
  EXPECT_EQ(fitter.fit(CaseTensor::v, 0x1p-15), 0.0F);  // subnormal in binary16
  EXPECT_EQ(fitter.fit(CaseTensor::v, 0x1p-14), 0x1p-14F);
  EXPECT_EQ(fitter.fit(CaseTensor::v, 1 + 0x1p-11), 1.0F);  // a tie: to even
  // 1.9609375 has 8 bits: exact in bfloat16 too.
  EXPECT_EQ(ValueFitter(softfloat::bfloat16).fit(CaseTensor::tokens, 5.0), 1.9609375F);
}

TEST(ValueFitter, UsesSubnormalNumbersOnlyWhenAsked) {
  ValueRanges ranges = default_ranges();
  ranges.subnormals = true;
  const ValueFitter fitter(softfloat::binary16, ranges);
  EXPECT_EQ(fitter.fit(CaseTensor::v, 0x1p-15), 0x1p-15F);
  EXPECT_EQ(fitter.fit(CaseTensor::v, -0x1p-24), -0x1p-24F);
  EXPECT_EQ(fitter.fit(CaseTensor::v, 0x1.8p-24), 0x1p-23F);  // a tie: to even
  EXPECT_EQ(fitter.fit(CaseTensor::v, 0x1p-25), 0.0F);        // a tie: to even
  EXPECT_EQ(fitter.smallest(), 0x1p-24);
}

// q [1, 1, 2], k and v [1, 2, 2] in float32: largest magnitudes and root mean squares by hand.
TEST(CapturedRanges, AreThoseOfTheFile) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "qkv.safetensors").string();
  const auto write = [&](const std::vector<float>& q) {
    const std::vector<float> k{0, 0, -5, 0};
    const std::vector<float> v{1, -1, 1, 1};
    const std::vector<Tensor> tensors{
        {"q", Dtype::f32, {1, 1, 2}, std::as_bytes(std::span(q))},
        {"k", Dtype::f32, {1, 2, 2}, std::as_bytes(std::span(k))},
        {"v", Dtype::f32, {1, 2, 2}, std::as_bytes(std::span(v))},
    };
    ASSERT_TRUE(write_safetensors(path, tensors));
  };
  write({3, -4});
  const auto ranges = captured_ranges(path);
  ASSERT_TRUE(ranges) << ranges.error().message;
  EXPECT_EQ((*ranges)[CaseTensor::q], (ValueRange{4, std::sqrt(12.5)}));
  EXPECT_EQ((*ranges)[CaseTensor::k], (ValueRange{5, 2.5}));
  EXPECT_EQ((*ranges)[CaseTensor::v], (ValueRange{1, 1}));
  EXPECT_EQ((*ranges)[CaseTensor::state], (ValueRange{1, 1}));
  EXPECT_EQ((*ranges)[CaseTensor::tokens], default_range(CaseTensor::tokens));
  EXPECT_EQ(ValueFitter(softfloat::binary16, *ranges).fit(CaseTensor::k, 100), 5.0F);
  write({0, 0});
  EXPECT_NE(captured_ranges(path).error().message.find("q holds zeros alone"), std::string::npos);
  write({1, std::nanf("")});
  EXPECT_NE(captured_ranges(path).error().message.find("at element 1"), std::string::npos);
  EXPECT_EQ(captured_ranges(path + "x").error().kind, ErrorKind::file);
}

}  // namespace
}  // namespace kvsim::fuzz
