// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// parse_number against MPFR: every format, rounding and overflow policy, values and flags.

#include <gmp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "softfloat/formats.h"
#include "softfloat/text.h"
#include "tests/softfloat/oracle_round.h"
#include "tests/softfloat/text_oracle.h"

namespace kvsim::softfloat {
namespace {

constexpr std::array all_roundings = {Rounding::ties_to_even,    Rounding::ties_to_away,
                                      Rounding::toward_zero,     Rounding::toward_positive,
                                      Rounding::toward_negative, Rounding::to_odd,
                                      Rounding::stochastic};

class TextParse : public testing::Test {
 protected:
  void check(const Format& format, const std::string& text) {
    const oracle::Exact exact = oracle::value_of_text(text);
    ASSERT_NE(exact.kind, oracle::Kind::nan) << text;
    for (const Rounding rounding : all_roundings) {
      Mode mode;
      mode.rounding = rounding;
      mode.random = static_cast<std::uint32_t>(engine_());
      mode.overflow = static_cast<Overflow>(engine_() % 4);
      mode.tininess = static_cast<Tininess>(engine_() % 2);
      const auto got = parse_number(format, text, mode);
      ASSERT_TRUE(got.has_value()) << got.error().message;
      const Rounded want = oracle::round(exact, format, mode);
      ++checked_;
      ASSERT_EQ(got->bits, want.bits) << describe(format, text, mode);
      ASSERT_EQ(got->flags, want.flags) << describe(format, text, mode);
    }
  }

  static std::string describe(const Format& format, const std::string& text, const Mode& mode) {
    return std::string(format_name(format)) + " " + text + " rounding " +
           std::to_string(static_cast<int>(mode.rounding)) + " random " +
           std::to_string(mode.random) + " overflow " +
           std::to_string(static_cast<int>(mode.overflow)) + " tininess " +
           std::to_string(static_cast<int>(mode.tininess));
  }

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

  std::string random_digits(std::int64_t count, std::string_view alphabet) {
    std::string out;
    for (; count > 0; --count) out += alphabet[engine_() % alphabet.size()];
    return out;
  }

  std::mt19937_64 engine_{20260101};
  std::int64_t checked_ = 0;
};

TEST_F(TextParse, RandomDecimals) {
  for (const NamedFormat& row : formats()) {
    const int low = (row.format.emin() - row.format.precision) * 301 / 1000 - 4;
    const int high = row.format.emax() * 301 / 1000 + 4;
    for (int i = 0; i < 2000; ++i) {
      const auto count = between(1, i % 10 == 0 ? 400 : 30);
      std::string text = engine_() % 2 == 0 ? "-" : "";
      std::string digits = random_digits(count, engine_() % 4 == 0 ? "09" : "0123456789");
      const auto point = between(0, count);
      text += digits.substr(0, static_cast<std::size_t>(point)) + "." +
              digits.substr(static_cast<std::size_t>(point));
      text += "e" + std::to_string(between(low, high) - point);
      check(row.format, text);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(checked_, 14 * 2000 * 7);
}

TEST_F(TextParse, RandomHexFloats) {
  for (const NamedFormat& row : formats()) {
    for (int i = 0; i < 2000; ++i) {
      const auto count = between(1, i % 10 == 0 ? 80 : 16);
      const std::string digits =
          random_digits(count, engine_() % 3 == 0 ? "0f" : "0123456789abcdefABCDEF");
      const auto point = static_cast<std::size_t>(between(0, count));
      const auto exponent =
          between(row.format.emin() - row.format.precision - 3, row.format.emax() + 3) -
          4 * static_cast<std::int64_t>(point);
      check(row.format, (engine_() % 2 == 0 ? "-0x" : "0x") + digits.substr(0, point) + "." +
                            digits.substr(point) + "p" + std::to_string(exponent));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(checked_, 14 * 2000 * 7);
}

// significand × 2^exponent + delta units in the last decimal place after `more` extra zeros.
std::string exact_decimal(std::uint64_t significand, int exponent, int delta, unsigned more) {
  mpz_t number;
  mpz_t power;
  mpz_init_set_ui(number, significand);
  mpz_init(power);
  int scale = 0;
  if (exponent >= 0) {
    mpz_mul_2exp(number, number, static_cast<unsigned>(exponent));
  } else {
    mpz_ui_pow_ui(power, 5, static_cast<unsigned>(-exponent));
    mpz_mul(number, number, power);
    scale = exponent;
  }
  mpz_ui_pow_ui(power, 10, more);
  mpz_mul(number, number, power);
  scale -= static_cast<int>(more);
  if (delta > 0) mpz_add_ui(number, number, static_cast<unsigned>(delta));
  if (delta < 0) mpz_sub_ui(number, number, static_cast<unsigned>(-delta));
  std::string out(mpz_sizeinbase(number, 10) + 2, '\0');
  mpz_get_str(out.data(), 10, number);
  out.resize(out.find('\0'));
  mpz_clear(number);
  mpz_clear(power);
  return out + "e" + std::to_string(scale);
}

// Ties between neighbours, and the decimals one digit below and above them, near every end of every
// format and at random: up to 768 digits that all matter, and 500 zeros more for some.
TEST_F(TextParse, HalfwayCases) {
  std::size_t longest = 0;
  for (const NamedFormat& row : formats()) {
    const Format& f = row.format;
    const std::uint64_t hidden = std::uint64_t{1} << f.precision;  // with one bit below the last
    std::vector<std::pair<std::uint64_t, int>> ties;  // significand, exponent of its unit
    const auto add = [&](std::uint64_t significand, int exponent) {
      ties.emplace_back(significand, exponent - f.precision);
    };
    for (const int exponent : {f.emin(), f.emin() + 1, 0, 1, f.emax() - 1, f.emax()}) {
      for (const std::uint64_t offset : {1U, 3U, 5U}) {
        add(hidden + offset % hidden, exponent);
        add(2 * hidden - offset % hidden, exponent);
      }
    }
    for (const std::uint64_t significand : {1U, 2U, 3U, 5U, 7U}) add(significand, f.emin());
    add(hidden - 1, f.emin());
    for (int i = 0; i < 50; ++i) {
      add(hidden + (engine_() % hidden | 1), static_cast<int>(between(f.emin(), f.emax())));
    }
    for (const auto& [significand, exponent] : ties) {
      for (const int delta : {-1, 0, 1}) {
        for (const unsigned more : {0U, 1U, 500U}) {
          std::string text = exact_decimal(significand, exponent, delta, more);
          longest = std::max(longest, text.size());
          if (engine_() % 2 == 0) text.insert(0, "-");
          check(f, text);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(longest, 1200U);
  EXPECT_GT(checked_, 14 * 80 * 9 * 7);
}

// A tie in hexadecimal, and the same with a one 40 or 200 digits behind the point.
TEST_F(TextParse, HexHalfwayCases) {
  for (const NamedFormat& row : formats()) {
    const std::uint64_t hidden = std::uint64_t{1} << row.format.precision;
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t tie = hidden + (engine_() % hidden | 1);
      const auto exponent = between(row.format.emin(), row.format.emax()) - row.format.precision;
      std::array<char, 17> digits{};
      std::to_chars(digits.data(), digits.data() + digits.size(), tie, 16);
      for (const std::size_t zeros : {39U, 199U}) {
        const std::string text = "0x" + std::string(digits.data()) + "." + std::string(zeros, '0');
        check(row.format, text + "0p" + std::to_string(exponent));
        check(row.format, text + "1p" + std::to_string(exponent));
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Far beyond every format, and beyond what the exponent could be computed with.
TEST_F(TextParse, ExtremeExponents) {
  for (const NamedFormat& row : formats()) {
    for (const std::string text :
         {"1e400", "1e-400", "-9.99e99999999", "-3e-99999999", "123e100000", "1e-100000",
          "0e999999999", "-0e-999999999", "0x1p100000", "-0x1p-100000", "0x1.8p999999",
          "0x0p999999", "4.9e-324", "1.7976931348623158e308", "1.7976931348623159e308"}) {
      check(row.format, text);
      if (HasFatalFailure()) return;
    }
  }
}

// MPFR is not asked here: its own exponent range ends before these.
TEST_F(TextParse, HostileTextCostsLittle) {
  const std::string many = "99999999999999999999999999999999999";
  for (const NamedFormat& row : formats()) {
    const auto same = [&](const std::string& hostile, const std::string& tame) {
      for (const Rounding rounding : all_roundings) {
        Mode mode;
        mode.rounding = rounding;
        mode.random = 0xffffffffU;
        const auto a = parse_number(row.format, hostile, mode);
        const auto b = parse_number(row.format, tame, mode);
        ASSERT_TRUE(a.has_value()) << a.error().message;
        ASSERT_TRUE(b.has_value()) << b.error().message;
        ASSERT_EQ(*a, *b) << row.name << " " << hostile.substr(0, 60);
      }
    };
    same("1e" + many, "1e9999");
    same("-1e-" + many, "-1e-9999");
    same("0x1p" + many, "0x1p99999");
    same("0x1p-" + many, "0x1p-99999");
    same("0e" + many, "0");
    same(std::string(16000, '0') + "1.5", "1.5");
    same("1.5" + std::string(16000, '0'), "1.5");
    same("1" + std::string(16000, '0') + "e-16000", "1");
    same("0." + std::string(16000, '0') + "1e16001", "1");
    same("0x" + std::string(16000, '0') + "1.8p0", "1.5");
    same("0x1" + std::string(16000, '0') + "p-64000", "1");
    same(std::string(16384, '9'), "1e16384");
    // One more than a tie, 16,000 digits behind the point.
    same("0." + std::string(16000, '3'), "0.33333333333333333333333333333333333333333");
  }
}

}  // namespace
}  // namespace kvsim::softfloat
