// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/softfloat/text_round_trip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "softfloat/text.h"
#include "tests/softfloat/oracle_round.h"
#include "tests/softfloat/text_oracle.h"

namespace kvsim::softfloat {
namespace {

// The value of a code by the oracle's decoder; exact in double for every format here.
double value_of(const Format& format, Bits bits) {
  const oracle::Operand operand = oracle::decode(format, bits);
  const auto magnitude =
      __builtin_ldexp(static_cast<double>(operand.significand), operand.exponent);
  return operand.negative ? -magnitude : magnitude;
}

template <class... Arguments>
std::string printed(const char* pattern, Arguments... arguments) {
  std::array<char, 1200> text{};
  std::snprintf(text.data(), text.size(), pattern, arguments...);
  return text.data();
}

// Digits without point, exponent and the zeros around them; and the power of ten of the first.
struct Digits {
  std::string digits;
  int exponent = 0;
  friend bool operator==(const Digits&, const Digits&) = default;
};

Digits digits_of(std::string_view text) {
  Digits out;
  const auto mark = text.find('e');
  if (mark != std::string_view::npos) {
    auto exponent = text.substr(mark + 1);
    if (exponent.front() == '+') exponent.remove_prefix(1);
    std::from_chars(exponent.data(), exponent.data() + exponent.size(), out.exponent);
    text = text.substr(0, mark);
  }
  bool point = false;
  bool started = false;
  int before_point = 0;
  for (const char c : text) {
    if (c == '.') {
      point = true;
      continue;
    }
    started = started || c != '0';
    if (started) {
      out.digits += c;
      if (!point) ++before_point;
    } else if (point) {
      --before_point;
    }
  }
  out.digits.resize(out.digits.find_last_not_of('0') + 1);
  out.exponent += before_point - 1;
  return out;
}

// The shortest text by search: for each number of digits the two decimals on either side of the
// value, tried with the oracle's reader.
std::string shortest_by_search(const Format& format, Bits bits, double value) {
  const auto reads_back = [&](const std::string& text) {
    const Rounded rounded = oracle::round(oracle::value_of_text(text), format, Mode{});
    return rounded.bits == bits && !rounded.flags.overflow;
  };
  for (int count = 1; count < 18; ++count) {
    const std::string nearest = printed("%.*e", count - 1, value);
    const Digits near = digits_of(nearest);
    std::string padded = near.digits;
    padded.resize(static_cast<std::size_t>(count), '0');
    std::uint64_t integer = 0;
    std::from_chars(padded.data(), padded.data() + padded.size(), integer);
    // "%.*e" gives the closest; in an interval that is narrower below than above, the one on the
    // other side may still read back.
    std::string best;
    for (const std::uint64_t candidate : {integer, integer + 1, integer - 1}) {
      if (candidate == 0) continue;
      const std::string text =
          std::to_string(candidate) + "e" + std::to_string(near.exponent + 1 - count);
      if (reads_back(text)) {
        best = text;
        break;
      }
    }
    if (best.empty()) continue;
    const Digits found = digits_of(best);
    const auto places = static_cast<int>(found.digits.size()) - 1;
    double close = 0;
    std::from_chars(best.data(), best.data() + best.size(), close);
    const std::string scientific = printed("%.*e", places, close);
    const int behind_point = std::max(places - found.exponent, 0);
    // An integer is written exactly.
    const std::string plain = printed("%.*f", behind_point, behind_point == 0 ? value : close);
    return plain.size() <= scientific.size() ? plain : scientific;
  }
  return "none";
}

}  // namespace

void check_every_code(const NamedFormat& row) {
  const Format& f = row.format;
  for (Bits bits = 0; bits <= f.code_mask(); ++bits) {
    const oracle::Operand operand = oracle::decode(f, bits);
    const std::string decimal = to_decimal(f, bits);
    const std::string hex_float = to_hex_float(f, bits);
    const std::string exact = to_exact_decimal(f, bits);
    const auto where = [&] { return std::string(row.name) + " " + to_bits_text(f, bits); };
    if (operand.kind == oracle::Kind::nan) {
      ASSERT_EQ(decimal, "nan") << where();
      ASSERT_EQ(hex_float, "nan") << where();
      ASSERT_EQ(exact, "nan") << where();
      continue;
    }
    for (const std::string& text : {decimal, hex_float, exact, to_bits_text(f, bits)}) {
      const auto back = parse_number(f, text);
      ASSERT_TRUE(back.has_value()) << where() << " " << text;
      ASSERT_EQ(back->bits, bits) << where() << " " << text;
      if (text != decimal) {
        ASSERT_EQ(back->flags, Flags{}) << where() << " " << text;
      }
    }
    if (operand.kind == oracle::Kind::infinite) continue;
    const double value = value_of(f, bits);
    ASSERT_EQ(hex_float, printed("%a", value)) << where();
    if (operand.negative) {
      const Bits positive = bits & f.magnitude_mask();
      ASSERT_EQ(decimal, "-" + to_decimal(f, positive)) << where();
      ASSERT_EQ(exact, "-" + to_exact_decimal(f, positive)) << where();
      continue;
    }
    if (operand.kind == oracle::Kind::zero) {
      ASSERT_EQ(decimal, "0") << where();
      ASSERT_EQ(exact, "0") << where();
      continue;
    }
    ASSERT_EQ(digits_of(exact), digits_of(printed("%.300e", value))) << where();
    ASSERT_EQ(decimal, shortest_by_search(f, bits, value)) << where();
  }
}

}  // namespace kvsim::softfloat
