// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_fillers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>

#include "sim/engine/columns.h"
#include "sim/exp_models.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

constexpr std::size_t most_candidates = 48;
constexpr std::size_t least_columns = 4;
constexpr std::size_t rows_of_candidate = 6;

/// Positive numbers of a format of at most 16 bits from `least` up to, not including, `end`.
std::vector<float> numbers_between(const Format& format, float least, float end) {
  std::vector<float> numbers;
  int exponent = 0;
  std::frexp(least, &exponent);
  const float step = std::ldexp(1.0F, exponent - format.precision);
  numbers.reserve(std::size_t{1} << format.precision);
  for (float value = least; value < end && value < 2 * least; value += step) {
    numbers.push_back(value);
  }
  return numbers;
}

struct Candidate {
  float large = 0;
  float filler = 0;
};

/// How far a binary32 is from half way between two numbers of `bits` significand bits, in ulps.
int distance_to_tie(float value, int bits) {
  const int dropped = 24 - bits;
  const std::uint32_t rest = std::bit_cast<std::uint32_t>(value) & ((1U << dropped) - 1);
  return std::abs(static_cast<int>(rest) - (1 << (dropped - 1)));
}

/// Pairs whose e lies next to a tie.
std::vector<Candidate> candidates(const Format& input, const Format& output) {
  const ExpFunction exp(ExpModel::correctly_rounded);
  const std::vector<float> scores = numbers_between(input, 32, 64);
  std::vector<float> t(scores.size());
  std::vector<float> e(scores.size());
  std::vector<Candidate> found;
  found.reserve(most_candidates);
  for (int exponent = 0; exponent > -10; --exponent) {
    const float least = std::ldexp(1.0F, exponent);
    for (const float magnitude : numbers_between(input, least, 2 * least)) {
      for (const float large : {magnitude, -magnitude}) {
        std::ranges::transform(scores, t.begin(), [&](float score) { return -score - large; });
        exp.exp(t, e);
        for (std::size_t i = 0; i < t.size(); ++i) {
          if (distance_to_tie(e[i], output.precision) > 2) continue;
          found.push_back({large, -scores[i]});
          if (found.size() == most_candidates) return found;
        }
      }
    }
  }
  return found;
}

float rounded(const Format& format, double value) {
  std::array<float, 1> number{static_cast<float>(value)};
  if (!round_values(format, number, number)) return std::numeric_limits<float>::quiet_NaN();
  return number[0];
}

/// The rows that tell what a candidate is worth: alone, with a tiny term and with a unit, with the
/// large term in the first column and in the last.
void add_rows(const Fillers& with, std::size_t n, std::vector<float>& x) {
  for (const auto& [large, other] : {std::pair{std::size_t{0}, std::size_t{1}}, {n - 1, n - 2}}) {
    for (const float value : {with.filler, with.tiny, with.unit}) {
      std::vector<float> row(n, with.filler);
      row[other] = value;
      row[large] = with.large;
      x.insert(x.end(), row.begin(), row.end());
    }
  }
}

/// Reads the columns that tell a unit from nothing and lose a tiny term.
void read_columns(std::span<const float> out, std::size_t n, Fillers& with) {
  for (std::size_t column = 0; column < n; ++column) {
    const std::size_t first = column < 2 ? 3 : 0;  // where it holds a filler
    const float low = out[first * n + column];
    const float high = out[(first + 2) * n + column];
    if (low == high || out[(first + 1) * n + column] != low) continue;
    with.columns.push_back(static_cast<std::int64_t>(column));
    with.low.push_back(low);
    with.high.push_back(high);
  }
}

}  // namespace

Result<Fillers> find_fillers(PositiveOperator& of, double tiny, double unit) {
  const std::size_t n = index(of.terms());
  const auto nothing = [&](const char* why) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: no element of a {} result tells a sum of 1 from 1 + 2^-23{}",
                             of.description(), softfloat::format_name(of.output()), why)};
  };
  if (n < 3 + least_columns) return nothing("; rows of 7 elements and more have some");
  std::vector<Fillers> tried;
  std::vector<float> x;
  for (const Candidate& candidate : candidates(of.input(), of.output())) {
    const auto large = static_cast<double>(candidate.large);
    tried.push_back({.large = candidate.large,
                     .tiny = rounded(of.input(), large + tiny),
                     .unit = rounded(of.input(), large + unit),
                     .filler = candidate.filler,
                     .columns = {},
                     .low = {},
                     .high = {}});
    add_rows(tried.back(), n, x);
  }
  if (tried.empty()) return nothing("");
  const auto out = of.run_rows({x});
  if (!out) return out.error();
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const std::size_t size = rows_of_candidate * n;
    read_columns(std::span(*out).subspan(i * size, size), n, tried[i]);
  }
  const auto best = std::ranges::max_element(
      tried, {}, [](const Fillers& fillers) { return fillers.columns.size(); });
  if (best->columns.size() < least_columns) return nothing("");
  return std::move(*best);
}

}  // namespace kvsim::gpu
