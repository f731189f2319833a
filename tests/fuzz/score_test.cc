// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/score.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/flip/confirm.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

/// A number of 400 bits; every operation rounds to nearest, so that what it is used for is good to
/// far more than a double.
class Wide {
 public:
  Wide(double value = 0) {  // implicit: the value is exact
    mpfr_init2(value_, 400);
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  Wide(const Wide& other) : Wide() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Wide& operator=(const Wide& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Wide() { mpfr_clear(value_); }

  friend Wide operator+(Wide a, const Wide& b) {
    mpfr_add(a.value_, a.value_, b.value_, MPFR_RNDN);
    return a;
  }
  friend Wide operator-(Wide a, const Wide& b) {
    mpfr_sub(a.value_, a.value_, b.value_, MPFR_RNDN);
    return a;
  }
  friend Wide operator*(Wide a, const Wide& b) {
    mpfr_mul(a.value_, a.value_, b.value_, MPFR_RNDN);
    return a;
  }
  friend Wide operator/(Wide a, const Wide& b) {
    mpfr_div(a.value_, a.value_, b.value_, MPFR_RNDN);
    return a;
  }
  [[nodiscard]] Wide exp() const {
    Wide result;
    mpfr_exp(result.value_, value_, MPFR_RNDN);
    return result;
  }
  [[nodiscard]] Wide root() const {
    Wide result;
    mpfr_sqrt(result.value_, value_, MPFR_RNDN);
    return result;
  }
  [[nodiscard]] double to_double() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

/// The first token's exact logit less the second's, as the formula of attention says.
Wide exact_by_mpfr(const FlipCase& c) {
  const std::vector<float>& tokens = c[CaseTensor::tokens];
  const std::size_t half = tokens.size() / 2;
  Wide difference;
  if (c.shape.kind == CaseKind::sum) {
    for (std::size_t k = 0; k < half; ++k) {
      const Wide state(c[CaseTensor::state][k]);
      difference = difference + state * Wide(tokens[k]) - state * Wide(tokens[half + k]);
    }
    return difference;
  }
  const AttentionShape& shape = c.shape.attention;
  const auto d = static_cast<std::size_t>(shape.head_dim);
  const auto keys = static_cast<std::size_t>(shape.kv_len);
  for (std::size_t h = 0; h < static_cast<std::size_t>(shape.query_heads); ++h) {
    const std::size_t kv = h / static_cast<std::size_t>(shape.group());
    Wide sum;
    std::vector<Wide> output(d);
    for (std::size_t j = 0; j < keys; ++j) {
      Wide score;
      const std::size_t row = (kv * keys + j) * d;
      for (std::size_t i = 0; i < d; ++i) {
        score = score + Wide(c[CaseTensor::q][h * d + i]) * Wide(c[CaseTensor::k][row + i]);
      }
      const Wide weight = (score / Wide(static_cast<double>(d)).root()).exp();
      sum = sum + weight;
      for (std::size_t i = 0; i < d; ++i) {
        output[i] = output[i] + weight * Wide(c[CaseTensor::v][row + i]);
      }
    }
    for (std::size_t i = 0; i < d; ++i) {
      const Wide token = Wide(tokens[h * d + i]) - Wide(tokens[half + h * d + i]);
      difference = difference + output[i] / sum * token;
    }
  }
  return difference;
}

/// A random case; with `large`, scores are far apart and some probabilities small.
FlipCase random_case(const CaseShape& shape, std::uint64_t seed) {
  Random random({11, seed, 0});
  FlipCase result = ValueFitter(shape.storage).random_case(shape, random);
  const float factor = seed % 3 == 0 ? 4 : seed % 3 == 1 ? 1 : 0.0625F;
  for (float& x : result[CaseTensor::q]) x *= factor;
  if (seed % 2 == 1) {
    for (float& x : result[CaseTensor::v]) x = std::abs(x);
  }
  return result;
}

struct Shape {
  std::string name;
  CaseShape shape;
};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  const auto add = [&](std::string name, CaseShape shape, const softfloat::Format& storage) {
    shape.storage = storage;
    result.push_back({std::move(name), std::move(shape)});
  };
  add("half", sum_shape(40, "sequential", "pairwise", softfloat::binary16), softfloat::binary16);
  add("single", sum_shape(40, "lanes(4,2)", "sequential", softfloat::binary32),
      softfloat::bfloat16);
  add("unit",
      sum_shape(64, "mma(a100.mma.f16.f32)", "split(2)/mma(h100.wgmma.f16.f32)",
                softfloat::binary32),
      softfloat::binary16);
  add("fa2", attention_shape(16, 300, "a100-fa2", 2), softfloat::binary16);
  add("fa2 in bfloat16", attention_shape(16, 300, "a100-fa2", 2), softfloat::bfloat16);
  add("fa3", attention_shape(20, 390, "h100-fa3", 3), softfloat::binary16);
  add("unfused", attention_shape(16, 200, "a100-fa2-unfused", 1), softfloat::binary16);
  add("eager", attention_shape(16, 60, "h100-eager", 1), softfloat::binary16);
  CaseShape mixed = attention_shape(16, 60, "control-attention", 1);
  mixed.kernels[path_off].kernel = "control-attention-exact";
  add("eager in binary32", mixed, softfloat::binary32);
  return result;
}

// The oracle is the formula in MPFR with 400 bits, which shares nothing with the reference.
TEST(FlipScore, ExactDifferenceIsWithinItsError) {
  for (const Shape& each : shapes()) {
    const auto scorer = FlipScorer::make(each.shape);
    ASSERT_TRUE(scorer) << each.name << ": " << scorer.error().message;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const FlipCase c = random_case(each.shape, seed);
      const FlipScore score = scorer->score(c);
      const Wide exact = exact_by_mpfr(c);
      ASSERT_TRUE(score.is_finite()) << each.name;
      // Beside the stated error, the rounding of both to a double.
      const double apart = std::abs((exact - Wide(score.exact)).to_double());
      EXPECT_LE(apart, score.reference_error + 0x1p-53 * std::abs(score.exact)) << each.name;
      EXPECT_LT(score.reference_error, 1e-24) << each.name;
      const auto confirmation = confirm(*scorer, c);
      ASSERT_TRUE(confirmation) << each.name;
      EXPECT_LE(confirmation->lowest, exact.to_double()) << each.name;
      EXPECT_GE(confirmation->highest, exact.to_double()) << each.name;
      EXPECT_LE(confirmation->highest - confirmation->lowest, 1e-15 * std::abs(score.exact) + 1e-60)
          << each.name;
    }
  }
}

// A path is never further from exact than its bound, and the bound is not out of reach.
TEST(FlipScore, PathsStayWithinTheirBounds) {
  for (const Shape& each : shapes()) {
    const auto scorer = FlipScorer::make(each.shape);
    ASSERT_TRUE(scorer) << each.name;
    double closest = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const FlipScore score = scorer->score(random_case(each.shape, seed));
      for (const PathScore& path : score.paths) {
        const double error = std::abs(path.difference - score.exact);
        EXPECT_LE(error, path.bound + score.reference_error) << each.name << ' ' << seed;
        closest = std::max(closest, error / path.bound);
      }
    }
    EXPECT_GT(closest, 0.02) << each.name;
  }
}

TEST(FlipScore, SeesThePlantedFlip) {
  const FlipCase planted = planted_flip();
  const auto scorer = FlipScorer::make(planted.shape);
  ASSERT_TRUE(scorer);
  const FlipScore score = scorer->score(planted);
  EXPECT_EQ(score.exact, 0x3p-10);
  EXPECT_EQ(score.paths[path_on].difference, -0x1p-10);
  EXPECT_EQ(score.paths[path_off].difference, 0x3p-10);
  EXPECT_TRUE(score.flips());
  const auto confirmation = confirm(*scorer, planted);
  ASSERT_TRUE(confirmation);
  EXPECT_TRUE(confirmation->flips());
  EXPECT_EQ(confirmation->margin(), 0x3p-10);
  EXPECT_EQ(confirmation->tokens[path_on], 1);
  EXPECT_EQ(confirmation->tokens[path_off], 0);
}

// A tie of the computed logits goes to token 0, a tie of the exact ones is no flip.
TEST(FlipScore, TreatsTiesAsArgmaxDoes) {
  FlipCase c = planted_flip();
  c[CaseTensor::tokens][31] = 0;  // token 1 has 1 alone: in sequence both have 1
  const auto scorer = FlipScorer::make(c.shape);
  ASSERT_TRUE(scorer);
  EXPECT_EQ(scorer->score(c).paths[path_on].difference, 0);
  EXPECT_EQ(scorer->score(c).paths[path_on].token(), 0);
  EXPECT_FALSE(scorer->score(c).flips());
  // The rows exchanged: in sequence the first row still wins the tie, exactly the second one does.
  std::vector<float>& tokens = c[CaseTensor::tokens];
  std::swap_ranges(tokens.begin(), tokens.begin() + 16, tokens.begin() + 16);
  EXPECT_TRUE(scorer->score(c).flips());
  tokens.assign(tokens.size(), 1);
  EXPECT_FALSE(scorer->score(c).flips());
  const auto confirmation = confirm(*scorer, c);
  ASSERT_TRUE(confirmation);
  EXPECT_FALSE(confirmation->flips());
}

}  // namespace
}  // namespace kvsim::fuzz
