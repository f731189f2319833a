// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/top_k_divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "run/divergence.h"
#include "run/margin.h"
#include "sim/inputs.h"
#include "tests/run/divergence_oracle.h"

namespace kvsim {
namespace {

using testing::HasSubstr;
using List = std::vector<TokenLogProbability>;

constexpr double infinity = std::numeric_limits<double>::infinity();

List top(const std::vector<double>& logits, std::int64_t count) {
  const SoftmaxNormalizer normalizer = *softmax_normalizer(logits);
  List list;
  for (const TokenLogit& entry : largest_logits(logits, count)) {
    list.push_back({entry.token, log_probability(normalizer, entry.logit)});
  }
  return list;
}

TEST(KlLowerBound, IsTheSumOverCommonTokensAndTheRest) {
  // p = (½, ¼, ⅛, ⅛), q = (¼, ½, ⅛, ⅛); both lists hold tokens 0 and 1, so that the rest is ¼
  // in both: ½ ln 2 + ¼ ln ½ + 0 = ¼ ln 2.
  const double ln2 = 0.69314718055994531;
  const List p{{0, -ln2}, {1, -2 * ln2}};
  const List q{{1, -ln2}, {0, -2 * ln2}};
  const Result<KlLowerBound> found = kl_lower_bound(p, q);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->common_tokens, 2);
  EXPECT_NEAR(found->nats, ln2 / 4, 1e-12);
  // Only token 0 in common: ½ ln 2 + ½ ln(½ ÷ ¾).
  const Result<KlLowerBound> one = kl_lower_bound(List{{0, -ln2}}, q);
  EXPECT_EQ(one->common_tokens, 1);
  EXPECT_NEAR(one->nats, ln2 / 2 + 0.5 * -0.40546510810816438, 1e-12);
}

TEST(KlLowerBound, IsNeverAboveTheWholeAndGrowsToIt) {
  double best_share = 0;
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    const double noise = std::ldexp(1.0, -static_cast<int>(draw % 10));
    std::vector<double> p;
    std::vector<double> q;
    for (std::uint64_t i = 0; i < 60; ++i) {
      p.push_back(3 * normal(11, 2 * draw, i));
      q.push_back(p.back() + noise * normal(11, 2 * draw + 1, i));
    }
    const double exact = oracle::relative_entropy(oracle::softmax(p), oracle::softmax(q)).value();
    for (const std::int64_t count : {1, 5, 20, 59}) {
      const Result<KlLowerBound> found = kl_lower_bound(top(p, count), top(q, count));
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_LE(found->nats, exact) << draw << " " << count;
      EXPECT_GE(found->nats, 0);
      if (count == 59) best_share = std::max(best_share, found->nats / exact);
    }
  }
  EXPECT_GT(best_share, 0.99);
}

TEST(KlLowerBound, StaysOneWhenTheLogProbabilitiesAreRounded) {
  for (std::uint64_t draw = 0; draw < 40; ++draw) {
    std::vector<double> p;
    std::vector<double> q;
    for (std::uint64_t i = 0; i < 50; ++i) {
      p.push_back(2 * normal(12, 2 * draw, i));
      q.push_back(p.back() + 0.01 * normal(12, 2 * draw + 1, i));
    }
    const double exact = oracle::relative_entropy(oracle::softmax(p), oracle::softmax(q)).value();
    List rounded_p = top(p, 20);
    List rounded_q = top(q, 20);
    for (std::size_t i = 0; i < rounded_p.size(); ++i) {  // three digits, as a server prints them
      rounded_p[i].log_probability = std::rint(rounded_p[i].log_probability * 1000) / 1000;
      rounded_q[i].log_probability = std::rint(rounded_q[i].log_probability * 1000) / 1000;
    }
    const Result<KlLowerBound> found = kl_lower_bound(rounded_p, rounded_q, 0.0005);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(found->nats, exact) << draw;
  }
}

TEST(KlLowerBound, StaysOneWhenEveryRoundingGoesTheWrongWay) {
  // Equal distributions with nearly everything on one token, whose log-probabilities are off by
  // +error and −error: the sum over common tokens is 2·error, the truth is 0.
  for (const double error : {1e-10, 1e-6, 1e-3, 0.05}) {
    const List p{{0, -1e-6 + error}, {1, -14 + error}};
    const List q{{0, -1e-6 - error}, {1, -14 - error}};
    EXPECT_EQ(kl_lower_bound(p, q, error)->nats, 0) << error;
    EXPECT_EQ(kl_lower_bound(q, p, error)->nats, 0) << error;
  }
}

TEST(KlLowerBound, KnowsEmptyAndImpossible) {
  EXPECT_EQ(kl_lower_bound(List{{0, -1}}, List{{1, -1}})->nats, 0);
  EXPECT_EQ(kl_lower_bound(List{}, List{})->common_tokens, 0);
  EXPECT_EQ(kl_lower_bound(List{{0, -1}}, List{{0, -infinity}})->nats, infinity);
  EXPECT_EQ(kl_lower_bound(List{{0, 0}}, List{{0, 0}})->nats, 0);
}

TEST(KlLowerBound, RefusesWhatAreNoLogProbabilities) {
  const auto message = [](const List& p, const List& q, double error) {
    const Result<KlLowerBound> result = kl_lower_bound(p, q, error);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(message({{3, 0.5}}, {}, 0), HasSubstr("p: the log-probability of token 3 is 0.5; "));
  EXPECT_THAT(message({}, {{3, std::nan("")}}, 0), HasSubstr("q: the log-probability of token 3"));
  EXPECT_THAT(message({{3, -1}, {3, -2}}, {}, 0), HasSubstr("p: token 3 stands twice; accepted"));
  EXPECT_THAT(message({{3, -0.1}, {4, -0.1}}, {}, 0), HasSubstr("sum to 1.8"));
  EXPECT_THAT(message({}, {}, 0.5), HasSubstr("error 0.5; accepted: from 0 to 0.1"));
}

}  // namespace
}  // namespace kvsim
