// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "softfloat/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <clocale>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim::softfloat {
namespace {

using testing::HasSubstr;
using testing::Not;

Bits parsed(const Format& format, std::string_view text) {
  const auto result = parse_number(format, text);
  EXPECT_TRUE(result.has_value()) << text << ": " << result.error().message;
  return result ? result->bits : ~Bits{0};
}

TEST(Text, TheAcceptedForms) {
  // 1.5 in binary16 is 0 01111 1000000000.
  for (const std::string_view text :
       {"1.5", "+1.5", "1.50", "01.5", "15e-1", "15E-1", "0.15e1", ".15e+1", "1500e-003", "0x1.8p0",
        "0x1.8", "0X1.8P+0", "+0x1.8p0", "0x3p-1", "0x.cp1", "0xC.p-3", "0x3e00", "0x03e00",
        "0X3E00"}) {
    EXPECT_EQ(parsed(binary16, text), 0x3e00U) << text;
  }
  EXPECT_EQ(parsed(binary16, "5."), 0x4500U);
  EXPECT_EQ(parsed(binary16, ".5"), 0x3800U);
  EXPECT_EQ(parsed(binary16, "-0"), 0x8000U);
  EXPECT_EQ(parsed(binary16, "-0.0e5"), 0x8000U);
  EXPECT_EQ(parsed(binary16, "-0x0p0"), 0x8000U);
  EXPECT_EQ(parsed(binary16, "0x0"), 0U);
  EXPECT_EQ(parsed(e4m3fnuz, "-0"), 0U);
  for (const std::string_view text : {"inf", "+inf", "Infinity", "INF", "+infinity"}) {
    EXPECT_EQ(parsed(binary32, text), 0x7f800000U) << text;
  }
  EXPECT_EQ(parsed(binary32, "-inf"), 0xff800000U);
  for (const std::string_view text : {"nan", "NaN", "-nan", "+NAN"}) {
    EXPECT_EQ(parsed(binary32, text), 0x7fc00000U) << text;
  }
  EXPECT_EQ(parsed(binary64, "0xffffffffffffffff"), ~Bits{0});
}

TEST(Text, BitsAreTakenAsTheyAre) {
  const auto signaling = parse_number(binary16, "0x7c01");
  ASSERT_TRUE(signaling.has_value());
  EXPECT_EQ(*signaling, (Rounded{0x7c01, {}}));
  for (const NamedFormat& row : formats()) {
    const Bits all = row.format.code_mask();
    EXPECT_EQ(parsed(row.format, to_bits_text(row.format, all)), all);
  }
}

TEST(Text, WhatAFormatCannotHoldFollowsTheMode) {
  const auto result = [](const Format& f, std::string_view text, Overflow overflow) {
    return *parse_number(f, text, {.overflow = overflow});
  };
  const Flags overflowed{.overflow = true, .inexact = true};
  EXPECT_EQ(result(binary16, "65520", Overflow::automatic), (Rounded{0x7c00, overflowed}));
  EXPECT_EQ(result(binary16, "65520", Overflow::saturate), (Rounded{0x7bff, overflowed}));
  EXPECT_EQ(result(binary16, "65519.99", Overflow::automatic),
            (Rounded{0x7bff, {.inexact = true}}));
  EXPECT_EQ(result(e4m3, "465", Overflow::automatic), (Rounded{0x7f, overflowed}));
  EXPECT_EQ(result(e4m3, "inf", Overflow::automatic), (Rounded{0x7f, overflowed}));
  EXPECT_EQ(result(e4m3, "-inf", Overflow::saturate), (Rounded{0xfe, overflowed}));
  EXPECT_EQ(result(e2m1, "-inf", Overflow::automatic), (Rounded{0xf, overflowed}));
  EXPECT_EQ(result(e2m1, "nan", Overflow::automatic), (Rounded{0x7, {.invalid = true}}));
  EXPECT_EQ(result(e8m0, "-1", Overflow::automatic), (Rounded{0xff, {.invalid = true}}));
  EXPECT_EQ(result(e8m0, "0", Overflow::automatic),
            (Rounded{0x00, {.underflow = true, .inexact = true}}));
  EXPECT_EQ(result(binary16, "1e-9", Overflow::automatic),
            (Rounded{0, {.underflow = true, .inexact = true}}));
}

TEST(Text, MalformedNumbersAreNamedInOneLine) {
  for (const std::string text :
       {"",       " ",     "+",     "-",      ".",    "e5",          "1e",       "1e+",
        "1e5.0",  "1.2.3", "--1",   "+-1",    " 1",   "1 ",          "1\n",      "1,5",
        "1_000",  "1'000", "0x",    "0x.",    "0xp1", "0x1p",        "0x1p+",    "0x1.8p1.5",
        "0x1.g",  "0xg",   "0x1pf", "0b101",  "1f",   "1.5f",        "infx",     "in",
        "nan(0)", "nanx",  "i",     "0x-1p3", "x10",  "1e5e5",       "\xc3\xa9", "\xd9\xa1",
        "1.5\t",  "-e",    "-0x",   "0x 1",   "one",  "\x7f\x1b[31m"}) {
    const auto result = parse_number(binary16, text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, HasSubstr("accepted are a decimal (-1.5e-3)"));
    for (const char c : result.error().message) EXPECT_TRUE(c >= ' ' && c <= '~') << text;
  }
  EXPECT_THAT(parse_number(binary16, "1,5").error().message, HasSubstr("number \"1,5\""));
  const std::string nul("1\0", 2);
  EXPECT_FALSE(parse_number(binary16, nul).has_value());
}

TEST(Text, BitsMustFitTheWidth) {
  const auto message = [](const Format& f, std::string_view text) {
    const auto result = parse_number(f, text);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_EQ(
      message(binary16, "0x10000"),
      "bits \"0x10000\": binary16 has 16 bits, at most 0xffff; a hex-float needs a '.' or a 'p'");
  EXPECT_THAT(message(tf32, "0x80000"), HasSubstr("tf32 has 19 bits, at most 0x7ffff"));
  EXPECT_THAT(message(e3m2, "0x40"), HasSubstr("e3m2 has 6 bits, at most 0x3f"));
  EXPECT_THAT(message(e2m1, "0x10"), HasSubstr("e2m1 has 4 bits, at most 0xf"));
  EXPECT_THAT(message(e8m13, "0x400000"), HasSubstr("e8m13 has 22 bits, at most 0x3fffff"));
  EXPECT_THAT(message(binary64, "0x10000000000000000"), HasSubstr("binary64 has 64 bits"));
  EXPECT_EQ(message(e2m1, "0xf"), "accepted");
  EXPECT_THAT(message(binary16, "-0x3c00"), HasSubstr("bits carry their own sign"));
  EXPECT_THAT(message(binary16, "0x10000z"), HasSubstr("accepted are"));
}

TEST(Text, LengthIsLimited) {
  EXPECT_TRUE(parse_number(binary16, std::string(longest_number, '1')).has_value());
  const auto result = parse_number(binary16, std::string(longest_number + 1, '1'));
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("16385 characters, at most 16384 are accepted"));
  EXPECT_LT(result.error().message.size(), 200U);
  EXPECT_FALSE(parse_number(binary16, std::string(10'000'000, '1')).has_value());
}

TEST(Text, BitsArePaddedToTheWidth) {
  EXPECT_EQ(to_bits_text(binary16, 1), "0x0001");
  EXPECT_EQ(to_bits_text(tf32, 0x1fc00), "0x1fc00");
  EXPECT_EQ(to_bits_text(tf32, 0), "0x00000");
  EXPECT_EQ(to_bits_text(e2m1, 0xf), "0xf");
  EXPECT_EQ(to_bits_text(e3m2, 0xf), "0x0f");
  EXPECT_EQ(to_bits_text(e8m13, 0xfe000), "0x0fe000");
  EXPECT_EQ(to_bits_text(binary64, 0xbff0000000000000), "0xbff0000000000000");
}

TEST(Text, PrintedNumbers) {
  struct Row {
    Format format;
    Bits bits;
    std::string_view decimal, hex_float, exact;
  };
  for (const auto& [format, bits, decimal, hex_float, exact] : std::vector<Row>{
           {binary16, 0x2e66, "0.1", "0x1.998p-4", "0.0999755859375"},
           {binary16, 0x7bff, "65504", "0x1.ffcp+15", "65504"},
           {binary16, 0xfbff, "-65504", "-0x1.ffcp+15", "-65504"},
           {binary16, 0x0001, "6e-08", "0x1p-24", "5.9604644775390625e-08"},
           {binary16, 0x0000, "0", "0x0p+0", "0"},
           {binary16, 0x8000, "-0", "-0x0p+0", "-0"},
           {binary16, 0x7c00, "inf", "inf", "inf"},
           {binary16, 0xfc00, "-inf", "-inf", "-inf"},
           {binary16, 0xfe01, "nan", "nan", "nan"},
           {e4m3, 0x7e, "448", "0x1.cp+8", "448"},
           {e4m3, 0xff, "nan", "nan", "nan"},
           {e4m3, 0x01, "0.002", "0x1p-9", "0.001953125"},
           {e5m2, 0x7b, "57344", "0x1.cp+15", "57344"},
           {e4m3fnuz, 0x80, "nan", "nan", "nan"},
           {e4m3fnuz, 0x7f, "240", "0x1.ep+7", "240"},
           {e2m3, 0x1f, "7.5", "0x1.ep+2", "7.5"},
           {e2m1, 0x7, "6", "0x1.8p+2", "6"},
           {e2m1, 0x9, "-0.5", "-0x1p-1", "-0.5"},
           {e8m0, 0xff, "nan", "nan", "nan"},
           {e8m0, 0x7f, "1", "0x1p+0", "1"},
           // 9e+37 reads back: anything from 3/4 of 2^126 up to its 3/2.
           {e8m0, 0xfd, "9e+37", "0x1p+126", "85070591730234615865843651857942052864"},
           // The shortest digits are a one, but the exact integer is as short as 1e+05.
           {bfloat16, 0x47c3, "99840", "0x1.86p+16", "99840"},
           {bfloat16, 0x3dcd, "0.1", "0x1.9ap-4", "0.10009765625"},
           {binary32, 0x3dcccccd, "0.1", "0x1.99999ap-4", "0.100000001490116119384765625"},
           {binary64, 0x3fb999999999999a, "0.1", "0x1.999999999999ap-4",
            "0.1000000000000000055511151231257827021181583404541015625"},
           {binary64, 0x0000000000000001, "5e-324", "0x1p-1074", ""},
           {binary64, 0x44b52d02c7e14af6, "1e+23", "0x1.52d02c7e14af6p+76",
            "99999999999999991611392"}}) {
    EXPECT_EQ(to_decimal(format, bits), decimal);
    EXPECT_EQ(to_hex_float(format, bits), hex_float);
    if (!exact.empty()) {
      EXPECT_EQ(to_exact_decimal(format, bits), exact);
    }
  }
}

// Bits above the width do not reach the text.
TEST(Text, UnusedBitsAreIgnored) {
  EXPECT_EQ(to_decimal(e4m3, 0xf38), to_decimal(e4m3, 0x38));
  EXPECT_EQ(to_bits_text(e4m3, 0xf38), "0x38");
}

template <class Float>
std::string standard_text(Float value) {
  std::array<char, 400> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

TEST(Text, ShortestBinary32EqualsTheStandardLibrary) {
  std::mt19937_64 engine(1);
  std::vector<std::uint32_t> codes;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t trailing : {0U, 1U, 2U, 0x7ffffeU, 0x7fffffU, 0x400000U}) {
      codes.push_back(exponent << 23 | trailing);
    }
  }
  for (int i = 0; i < 100'000; ++i) codes.push_back(static_cast<std::uint32_t>(engine()));
  for (int i = 0; i < 10'000; ++i) {
    codes.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(engine() >> (engine() % 64))));
  }
  for (const std::uint32_t bits : codes) {
    const float value = std::bit_cast<float>(bits);
    if (value != value) continue;
    ASSERT_EQ(to_decimal(binary32, bits), standard_text(value)) << std::hex << bits;
  }
}

TEST(Text, ShortestBinary64EqualsTheStandardLibrary) {
  std::mt19937_64 engine(2);
  std::vector<std::uint64_t> codes;
  for (std::uint64_t exponent = 0; exponent < 2047; ++exponent) {
    for (const std::uint64_t trailing : {0x0ULL, 0x1ULL, 0xfffffffffffffULL}) {
      codes.push_back(exponent << 52 | trailing);
    }
  }
  for (int i = 0; i < 100'000; ++i) codes.push_back(engine());
  for (int i = 0; i < 10'000; ++i) {
    codes.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(engine() >> (engine() % 64))));
  }
  for (int i = 0; i < 10'000; ++i) {
    codes.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(engine() % 100'000) / 1000));
  }
  for (const std::uint64_t bits : codes) {
    const double value = std::bit_cast<double>(bits);
    if (value != value) continue;
    ASSERT_EQ(to_decimal(binary64, bits), standard_text(value)) << std::hex << bits;
  }
}

TEST(Text, TheLocaleIsNotAsked) {
  for (const char* const name : {"de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8"}) {
    std::setlocale(LC_ALL, name);
    EXPECT_EQ(parsed(binary16, "1.5"), 0x3e00U);
    EXPECT_EQ(parsed(binary16, "INFINITY"), 0x7c00U);
    EXPECT_FALSE(parse_number(binary16, "1,5").has_value());
    EXPECT_EQ(to_decimal(binary16, 0x3e00), "1.5");
  }
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace kvsim::softfloat
