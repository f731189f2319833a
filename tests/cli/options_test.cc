// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// What stands on a command line, and what an error message may repeat of it.
#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "cli/printable.h"

namespace kvsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array test_options{
    OptionSpec{"--format", "NAME", "a value"},
    OptionSpec{"--order", "ORDER", "values", true},
    OptionSpec{"--a", "LIST", "a short name"},
    OptionSpec{"--dry", "", "a flag"},
};

Result<ParsedOptions> parse(const std::vector<std::string>& arguments) {
  return parse_options(test_options, arguments);
}

std::string error_of(const std::vector<std::string>& arguments) {
  const Result<ParsedOptions> parsed = parse(arguments);
  return parsed ? "no error" : parsed.error().message;
}

TEST(ParseOptions, BothSpellingsOfAValueAreEqual) {
  EXPECT_EQ(parse({"--format", "fp16"})->value("--format"), "fp16");
  EXPECT_EQ(parse({"--format=fp16"})->value("--format"), "fp16");
  EXPECT_EQ(parse({"--format="})->value("--format"), "");
  EXPECT_EQ(parse({"--format", ""})->value("--format"), "");
  EXPECT_EQ(parse({"--format=a=b"})->value("--format"), "a=b");
  EXPECT_EQ(parse({"--a=[1,2]"})->value("--a"), "[1,2]");
  EXPECT_EQ(parse({"--a", "-1,2"})->value("--a"), "-1,2");
  EXPECT_EQ(parse({"--a=-inf"})->value("--a"), "-inf");
}

TEST(ParseOptions, NegativeNumbersArePositional) {
  const auto parsed =
      parse({"add", "-0.25", "-.5", "-inf", "-NaN", "--dry", "-1e3", "--", "--dry"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->positionals(),
              ElementsAre("add", "-0.25", "-.5", "-inf", "-NaN", "-1e3", "--dry"));
  EXPECT_TRUE(parsed->has("--dry"));
}

TEST(ParseOptions, AnOptionTakesOneArgument) {
  const auto parsed = parse({"--order", "a", "b", "--order=c", "d", "-"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->values("--order"), ElementsAre("a", "c"));
  EXPECT_THAT(parsed->positionals(), ElementsAre("b", "d", "-"));
}

TEST(ParseOptions, MistakesNameTheOptionAndWhatIsAccepted) {
  EXPECT_EQ(error_of({"--formt", "fp16"}), "unknown option '--formt'; did you mean --format?");
  EXPECT_EQ(error_of({"--formt=fp16"}), "unknown option '--formt'; did you mean --format?");
  EXPECT_THAT(error_of({"--zzzzzzzzz"}), HasSubstr("accepted are --format, --order"));
  EXPECT_THAT(error_of({"-x"}), HasSubstr("unknown option '-x'"));
  EXPECT_EQ(error_of({"--format"}), "--format has no value; --format NAME is accepted");
  EXPECT_EQ(error_of({"--format", "--dry"}), "--format has no value; --format NAME is accepted");
  EXPECT_EQ(error_of({"--format", "a", "--format=b"}), "--format is given twice; once is accepted");
  EXPECT_EQ(error_of({"--dry=yes"}), "--dry is given the value 'yes'; it takes none");
}

TEST(ParseInteger, AcceptsDecimalsInRangeOnly) {
  EXPECT_EQ(*parse_integer("--n", "42", 1, 99), 42);
  EXPECT_EQ(*parse_integer("--n", "-3", -5, 99), -3);
  for (const std::string text :
       {"", "0", "100", "4x", "0x4", " 4", "+4", "4.0", "1e1", "99999999999999999999999999"}) {
    const auto value = parse_integer("--n", text, 1, 99);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().message, "--n is '" + text + "'; an integer from 1 to 99 is accepted");
  }
}

TEST(Printable, OneLineWhateverComesIn) {
  EXPECT_EQ(printable("fp16 é ∞"), "fp16 é ∞");
  EXPECT_EQ(printable("a\nb\tc\r\x1b[31m"), "a\\nb\\tc\\x0d\\x1b[31m");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");                    // a surrogate
  EXPECT_EQ(printable("\xc0\xaf\xe2\x80\xae"), "\\xc0\\xaf\\xe2\\x80\\xae");  // overlong; reversal
  EXPECT_EQ(printable("\xc2\x9b\xe2\x80\xa8"), "\\xc2\\x9b\\xe2\\x80\\xa8");
  EXPECT_EQ(printable(std::string(1, '\0')), "\\x00");
  EXPECT_EQ(printable(std::string(65, 'x')), std::string(64, 'x') + "…");
  EXPECT_EQ(printable(std::string(64, 'x')), std::string(64, 'x'));
}

}  // namespace
}  // namespace kvsim
