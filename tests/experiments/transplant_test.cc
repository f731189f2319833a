// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/transplant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "softfloat/formats.h"

/// State taken from one sequence into another, on caches of a few numbers.
namespace kvsim::experiments {
namespace {

/// Two layers, two heads, three rows of one number. Its logits are sums of what it holds.
class SmallSequence : public EngineSequence {
 public:
  explicit SmallSequence(double unit, softfloat::Format format = softfloat::binary64)
      : unit_(unit), format_(format), cells_(24) {
    for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] = unit * static_cast<double>(i + 1);
  }

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override {
    steps.push_back(step);
    EnginePass pass;
    double sum = tokens.back();
    for (const double cell : cells_) sum += cell;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      double hidden = sum + static_cast<double>(layer);
      for (const HiddenReplacement& each : request.replaced) {
        if (each.layer == layer) hidden = each.values.front();
      }
      pass.values.push_back({layer, "hidden", 0, step.first_row, {hidden}});
      sum = hidden;
    }
    pass.logits = {0, sum, 1};
    return pass;
  }
  StateShape state_shape() const override { return {2, 2, 1, format_}; }
  Result<std::vector<double>> state(const StateBlock& block) const override {
    std::vector<double> numbers;
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        numbers.push_back(cells_[index(block, head, row)]);
      }
    }
    return numbers;
  }
  Result<bool> set_state(const StateBlock& block, std::span<const double> numbers) override {
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        cells_[index(block, head, row)] =
            numbers[static_cast<std::size_t>(head * block.rows + row)];
      }
    }
    return true;
  }
  void clear() override {}
  Result<std::unique_ptr<EngineSequence>> save() const override {
    auto copy = std::make_unique<SmallSequence>(unit_, format_);
    copy->cells_ = cells_;
    return std::unique_ptr<EngineSequence>(std::move(copy));
  }

  [[nodiscard]] const std::vector<double>& cells() const { return cells_; }
  std::vector<PlanStep> steps;

 private:
  /// [layer][part][head][row]
  static std::size_t index(const StateBlock& block, std::int64_t head, std::int64_t row) {
    const std::int64_t part = block.part == KvPart::key ? 0 : 1;
    return static_cast<std::size_t>(((block.layer * 2 + part) * 2 + head) * 3 + block.first_row +
                                    row);
  }

  double unit_;
  softfloat::Format format_;
  std::vector<double> cells_;
};

/// Which of the 24 numbers came from the donor.
std::vector<int> taken(const CacheMask& mask) {
  const SmallSequence donor(1);
  SmallSequence recipient(-1);
  EXPECT_TRUE(transplant(donor, recipient, mask));
  std::vector<int> indices;
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(std::abs(recipient.cells()[i]), static_cast<double>(i + 1));
    if (recipient.cells()[i] > 0) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

TEST(Transplant, TakesWhatTheMaskNames) {
  const CacheMask whole = whole_cache(SmallSequence(1).state_shape(), 3);
  EXPECT_EQ(taken(whole).size(), 24U);
  CacheMask mask = whole;
  mask.values = false;
  EXPECT_THAT(taken(mask), testing::ElementsAre(0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17));
  mask.layers = {1, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(12, 13, 14, 15, 16, 17));
  mask.heads = {1, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(15, 16, 17));
  mask.rows = {1, 2};
  EXPECT_THAT(taken(mask), testing::ElementsAre(16, 17));
  mask = whole;
  mask.keys = false;
  mask.rows = {2, 1};
  EXPECT_THAT(taken(mask), testing::ElementsAre(8, 11, 20, 23));
  mask.rows = {2, 0};
  EXPECT_TRUE(taken(mask).empty());
}

TEST(Transplant, RefusesOtherCaches) {
  const SmallSequence donor(1, softfloat::binary32);
  SmallSequence recipient(-1);
  CacheMask mask = whole_cache(recipient.state_shape(), 3);
  const auto other = transplant(donor, recipient, mask);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, testing::HasSubstr("another shape or format"));
  mask.heads = {1, 2};
  const auto heads = transplant(SmallSequence(1), recipient, mask);
  ASSERT_FALSE(heads);
  EXPECT_THAT(heads.error().message, testing::HasSubstr("accepted: 2 layers of 2 heads"));
}

Fork fork_of(double unit) { return {std::make_unique<SmallSequence>(unit), {5, 6, 7, 9}}; }

TEST(PatchedPass, TakesCacheAndHiddenStatesAndLeavesTheRecipientAlone) {
  Fork donor = fork_of(1);
  Fork recipient = fork_of(-1);
  const auto of_donor = donor.pass({.layer_values = true});
  const auto of_recipient = recipient.pass({.layer_values = true});
  ASSERT_TRUE(of_donor && of_recipient);
  // 300 = 1 + 2 + … + 24; the token is 9, the second layer adds 1.
  EXPECT_EQ(of_donor->logits[1], 310);
  EXPECT_EQ(of_recipient->logits[1], -290);
  const CacheMask whole = whole_cache(donor.sequence->state_shape(), 3);
  const auto logit = [&](const StatePatch& patch) {
    const auto patched = patched_pass(donor, *of_donor, recipient, patch);
    EXPECT_TRUE(patched);
    return patched->pass.logits[1];
  };
  EXPECT_EQ(logit({}), -290);
  EXPECT_EQ(logit({.cache = whole, .hidden = {}}), 310);
  EXPECT_EQ(logit({.cache = {}, .hidden = {1}}), 310);
  EXPECT_EQ(logit({.cache = {}, .hidden = {0}}), 310);  // 309, and 1 of the second layer
  CacheMask keys = whole;
  keys.values = false;
  // Keys sum to 1 + … + 6 + 13 + … + 18 = 114, values to 186.
  EXPECT_EQ(logit({.cache = keys, .hidden = {}}), 114 - 186 + 10);
  EXPECT_EQ(recipient.pass({})->logits[1], -290);
  const auto lacking = patched_pass(donor, EnginePass{}, recipient, {.cache = {}, .hidden = {1}});
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().message, testing::HasSubstr("hidden state behind layer 1"));
}

TEST(GreedyContinuation, FeedsWhatItChooses) {
  Fork fork = fork_of(1);  // its largest logit is always the one of token 1
  const auto tokens = greedy_continuation(fork, 2, 3);
  ASSERT_TRUE(tokens);
  EXPECT_THAT(*tokens, testing::ElementsAre(2, 1, 1));
  EXPECT_THAT(fork.tokens, testing::ElementsAre(5, 6, 7, 9, 2, 1));
  const auto& steps = dynamic_cast<const SmallSequence&>(*fork.sequence).steps;
  EXPECT_THAT(steps, testing::ElementsAre(PlanStep{4, 1, 4}, PlanStep{5, 1, 5}));
}

TEST(Recovery, IsAShareOfTheBaseAndUndefinedWithoutOne) {
  EXPECT_EQ(recovery_percent(0.5, 0), 100);
  EXPECT_EQ(recovery_percent(0.5, 0.5), 0);
  EXPECT_EQ(recovery_percent(0.5, 0.625), -25);
  EXPECT_FALSE(recovery_percent(0, 0));
  EXPECT_FALSE(recovery_percent(0, 0.5));
  EXPECT_FALSE(recovery_percent(1, HUGE_VAL));
}

}  // namespace
}  // namespace kvsim::experiments
