// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/objective.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "fuzz/flip/search.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

/// What is claimed of a case by hand: first by the search's own score, then as confirmed.
struct Claims {
  Claim searched;
  Claim confirmed;
  FlipScore score;
};

Claims claims_of(FlipCase flip_case, Target target) {
  flip_case.shape.target = target;
  const auto scorer = FlipScorer::make(flip_case.shape);
  EXPECT_TRUE(scorer);
  const FlipScore score = scorer->score(flip_case);
  const auto confirmation = confirm(*scorer, flip_case);
  EXPECT_TRUE(confirmation);
  const Objective& wanted = objective(target);
  return {wanted.claim(flip_case, score), wanted.confirmed_claim(flip_case, score, *confirmation),
          score};
}

void expect_both(const Claims& claims, double value, std::size_t path) {
  for (const Claim& claim : {claims.searched, claims.confirmed}) {
    ASSERT_TRUE(claim.holds());
    EXPECT_NEAR(claim.value, value, 1e-14 * value);
    EXPECT_EQ(claim.path, path);
  }
}

TEST(Objectives, StandInTheOrderOfTheTargets) {
  for (std::size_t i = 0; i < target_names.size(); ++i) {
    const auto target = find_target(target_names[i]);
    ASSERT_TRUE(target);
    EXPECT_EQ(to_string(*target), target_names[i]);
    EXPECT_EQ(objective(*target).target, *target);
  }
  EXPECT_FALSE(find_target("flips"));
}

// The planted flip, worked out in cases.h: exact difference 2^-8 - 2^-10, in sequence -2^-10, in
// pairs as exact.
TEST(Objectives, JudgeThePlantedFlip) {
  constexpr double exact = 0x1p-8 - 0x1p-10;
  const Claims flip = claims_of(planted_flip(), Target::flip);
  const double on_bound = flip.score.paths[path_on].bound;
  const double bound = flip.score.bound();
  ASSERT_GT(on_bound, exact);
  expect_both(flip, exact / bound, path_on);
  expect_both(claims_of(planted_flip(), Target::divergence), 0x1p-8 / bound, path_on);
  expect_both(claims_of(planted_flip(), Target::bound), 0x1p-8 / on_bound, path_on);
  EXPECT_FALSE(claims_of(planted_flip(), Target::tie).confirmed.holds());
  EXPECT_FALSE(claims_of(planted_flip(), Target::nan).searched.holds());
  // The path that errs may be the other one.
  FlipCase exchanged = planted_flip();
  std::swap(exchanged.shape.orders[path_on], exchanged.shape.orders[path_off]);
  expect_both(claims_of(exchanged, Target::bound), 0x1p-8 / on_bound, path_off);
}

TEST(Objectives, JudgeATie) {
  FlipCase tie = planted_flip();
  tie[CaseTensor::tokens][31] = 0;  // in sequence both logits are 1, exactly they are 2^-8 apart
  const Claims claims = claims_of(tie, Target::tie);
  expect_both(claims, 0x1p-8 / claims.score.paths[path_on].bound, path_on);
  // Equal tokens tie on both paths, and exactly, too: nothing is claimed.
  for (std::size_t k = 0; k < 16; ++k) tie[CaseTensor::tokens][16 + k] = tie[CaseTensor::tokens][k];
  for (const Target target :
       {Target::flip, Target::divergence, Target::kl, Target::bound, Target::tie, Target::nan}) {
    const Claims none = claims_of(tie, target);
    EXPECT_FALSE(none.searched.holds()) << to_string(target);
    EXPECT_FALSE(none.confirmed.holds()) << to_string(target);
  }
}

// 4 · 128² = 65536 is beyond the largest number of binary16, 65504, by enough to round to infinity;
// 128 is 65.3 times the largest magnitude of the range of tokens.
TEST(Objectives, JudgeAnOverflow) {
  FlipCase large = empty_case(sum_shape(4, "sequential", "exact", softfloat::binary16));
  for (float& x : large[CaseTensor::state]) x = 128;
  for (std::size_t k = 0; k < 4; ++k) large[CaseTensor::tokens][k] = 128;
  expect_both(claims_of(large, Target::nan), 1.9609375 / 128, path_on);
  for (const Target target :
       {Target::flip, Target::divergence, Target::kl, Target::bound, Target::tie}) {
    const Claims none = claims_of(large, target);
    EXPECT_FALSE(none.searched.holds()) << to_string(target);
    EXPECT_FALSE(none.confirmed.holds()) << to_string(target);
  }
  // Negative numbers are as large.
  FlipCase negative = large;
  for (float& x : negative[CaseTensor::state]) x = -x;
  for (float& x : negative[CaseTensor::tokens]) x = -x;
  expect_both(claims_of(negative, Target::nan), 1.9609375 / 128, path_on);
  // Logits that are not finite even exactly are no find.
  FlipScore overflow;
  overflow.exact = INFINITY;
  overflow.paths = {PathScore{INFINITY, 1}, PathScore{INFINITY, 1}};
  EXPECT_FALSE(objective(Target::nan).claim(large, overflow).holds());
  // 3 · 128² = 49152 fits.
  large[CaseTensor::tokens][3] = 0;
  EXPECT_FALSE(claims_of(large, Target::nan).confirmed.holds());
}

/// p log(p / q) + (1 - p) log((1 - p) / (1 - q)) of two logistic probabilities, with 256 bits.
double logistic_kl(double on, double off) {
  mpfr_t p, q, left, right;
  for (auto* each : {&p, &q, &left, &right}) mpfr_init2(*each, 256);
  const auto logistic = [](mpfr_t result, double x) {
    mpfr_set_d(result, -x, MPFR_RNDN);
    mpfr_exp(result, result, MPFR_RNDN);
    mpfr_add_ui(result, result, 1, MPFR_RNDN);
    mpfr_ui_div(result, 1, result, MPFR_RNDN);
  };
  const auto term = [&](mpfr_t result, double a, double b) {
    logistic(p, a);
    logistic(q, b);
    mpfr_div(result, p, q, MPFR_RNDN);
    mpfr_log(result, result, MPFR_RNDN);
    mpfr_mul(result, result, p, MPFR_RNDN);
  };
  term(left, on, off);
  term(right, -on, -off);
  mpfr_add(left, left, right, MPFR_RNDN);
  const double result = mpfr_get_d(left, MPFR_RNDN);
  for (auto* each : {&p, &q, &left, &right}) mpfr_clear(*each);
  return result;
}

TEST(Objectives, KlIsThatOfTwoTokens) {
  for (const auto& [on, off] : {std::pair{0.5, -0.25}, {0x1p-20, 0.0}, {-9.0, 3.0}}) {
    FlipScore score;
    score.paths = {PathScore{on, 1}, PathScore{off, 1}};
    const double expected = logistic_kl(on, off);
    EXPECT_NEAR(two_token_kl(score), expected, 0x1p-45 * expected);
  }
  // Of nearly equal tokens KL is about the square of the difference ÷ 8: 2^-103 counts, 2^-123 is
  // less than twice the floor.
  FlipScore near;
  near.paths = {PathScore{0x1p-50, 1}, PathScore{0, 1}};
  EXPECT_TRUE(objective(Target::kl).claim({}, near).holds());
  near.paths[path_on].difference = 0x1p-60;
  EXPECT_FALSE(objective(Target::kl).claim({}, near).holds());
  const Claims planted = claims_of(planted_flip(), Target::kl);
  expect_both(planted, logistic_kl(-0x1p-10, 0x1p-8 - 0x1p-10), path_on);
}

TEST(Objectives, FitnessRisesTowardsTheFlip) {
  const auto fitness = [](double exact, double on, double off) {
    FlipScore score;
    score.exact = exact;
    score.paths = {PathScore{on, 1}, PathScore{off, 1}};
    return objective(Target::flip).fitness({}, score);
  };
  // No flip: nearer is better. A flip: a larger margin is better, and more so than any non-flip.
  EXPECT_LT(fitness(9, 8.5, 9), fitness(2, 1.5, 2));
  EXPECT_LT(fitness(2, 1.5, 2), fitness(2, 0.5, 2));
  EXPECT_LT(fitness(2, 1.5, 2), fitness(0.4, -0.1, 0.4));
  EXPECT_LT(fitness(0.4, -0.1, 0.4), fitness(0.8, -0.1, 0.8));
  EXPECT_LT(fitness(-0.4, 0.1, -0.4), fitness(-0.8, 0.1, -0.8));
  EXPECT_DOUBLE_EQ(fitness(0.8, -0.1, 0.8), (0.8 + 0.1 * 0.1) / 2);
  EXPECT_EQ(fitness(0.4, NAN, 1), no_fitness);
}

// Whatever is looked for, a search gets further than random numbers do, and says so under oath.
TEST(Objectives, AreFoundBySearch) {
  for (std::size_t i = 0; i < target_names.size(); ++i) {
    const auto target = static_cast<Target>(i);
    CaseShape shape = sum_shape(64, "sequential", "pairwise",
                                target == Target::nan ? softfloat::e4m3 : softfloat::binary16);
    shape.target = target;
    const auto scorer = FlipScorer::make(shape);
    ASSERT_TRUE(scorer);
    FlipSearch search(*scorer, {.seed = 0, .islands = 4, .threads = 2});
    search.run(2000, [](std::int64_t) { return true; });
    const auto found = search.confirmed();
    ASSERT_TRUE(found) << to_string(target);
    EXPECT_GT(found->claim.value, 2 * search.baseline().best_value) << to_string(target);
    EXPECT_LE(found->claim.value, objective(target).largest_value) << to_string(target);
    EXPECT_NEAR(found->claim.value, found->find.scored.claim.value,
                1e-9 * found->find.scored.claim.value);
    const auto read = parse_case(to_text(found->find.scored.flip_case));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->shape.target, target);
  }
}

}  // namespace
}  // namespace kvsim::fuzz
