// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/model_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/model_shrink.h"
#include "tests/run/fake_engine.h"

namespace kvsim::fuzz {
namespace {

/// Arms of the fake engine differ by up to 2^-4 in each logit; "binary64" stands for logits without
/// that difference.
class TwoArmEngine : public test::FakeEngine {
 public:
  std::string storage() const override { return "bfloat16"; }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override {
    std::vector<ArmSetting> rest;
    bool exact = false;
    for (const ArmSetting& setting : settings) {
      if (setting.key == "dispatch") {
        exact = setting.value == "binary64";
      } else {
        rest.push_back(setting);
      }
    }
    if (exact) rest = {{"noise", "0"}};
    if (!exact && rest.empty()) rest = {{"noise", "16"}};
    return FakeEngine::arm(rest);
  }
};

std::array<Arm, 2> on_and_off() { return {parse_arm("on").value(), parse_arm("off").value()}; }

const std::vector<Prompt>& prompts() {
  static const std::vector<Prompt> all{{1, 2, 3, 4, 5}, {6, 7, 8}, {9, 10, 11, 12}, {3, 1, 2}};
  return all;
}

constexpr auto always = [](std::int64_t) { return true; };

std::string state_after(const ModelScorer& scorer, std::int64_t runs, int threads,
                        std::uint64_t seed) {
  ModelSearch search(scorer, prompts(), {.seed = seed, .islands = 3, .threads = threads});
  const auto done = search.run(runs, always);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(search.runs(), runs);
  return search.state_text();
}

TEST(ModelSearch, DependsOnSeedAndRunsAlone) {
  TwoArmEngine engine;
  const auto scorer = ModelScorer::make(engine, on_and_off(), 12);
  ASSERT_TRUE(scorer) << scorer.error().message;
  const std::string once = state_after(*scorer, 100, 1, 5);
  EXPECT_EQ(state_after(*scorer, 100, 7, 5), once);
  EXPECT_NE(state_after(*scorer, 100, 1, 6), once);
}

TEST(ModelSearch, GoesOnWhereItsStateStopped) {
  TwoArmEngine engine;
  const auto scorer = ModelScorer::make(engine, on_and_off(), 12);
  ASSERT_TRUE(scorer);
  const std::string straight = state_after(*scorer, 120, 2, 3);
  ModelSearch resumed(*scorer, prompts(), {.seed = 3, .islands = 3});
  const std::string half = state_after(*scorer, 50, 1, 3);
  const auto read = resumed.read_state(half);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(resumed.runs(), 50);
  ASSERT_TRUE(resumed.run(120, always));
  EXPECT_EQ(resumed.state_text(), straight);
  // States of other searches, and texts that are none.
  ModelSearch another(*scorer, prompts(), {.seed = 4, .islands = 3});
  EXPECT_NE(another.read_state(half).error().message.find("another model"), std::string::npos);
  ModelSearch other_prompts(*scorer, {{1}}, {.seed = 3, .islands = 3});
  EXPECT_FALSE(other_prompts.read_state(half));
  for (const std::string& text : {half + "more", half.substr(0, half.size() / 2)}) {
    EXPECT_FALSE(resumed.read_state(text));
  }
}

// What a flip says, computed here from the fake engine's logits.
TEST(ModelScorer, JudgesByBinary64) {
  TwoArmEngine engine;
  const auto scorer = ModelScorer::make(engine, on_and_off(), 12);
  ASSERT_TRUE(scorer);
  ModelSearch search(*scorer, prompts(), {.seed = 0, .islands = 4});
  ASSERT_TRUE(search.run(400, always));
  const ModelFlip* const best = search.best();
  ASSERT_NE(best, nullptr);
  EXPECT_TRUE(best->holds());
  const ModelCase& flip_case = best->flip_case;
  const auto logits = [&](const std::vector<ArmSetting>& settings, bool cached) {
    const auto arm = engine.arm(settings);
    const auto sequence = (*arm)->open(64, {});
    const std::span<const TokenId> ids(flip_case.ids);
    const std::int64_t n = flip_case.prompt_tokens;
    const std::int64_t all = std::ssize(ids);
    // On: the prompt, then token by token. Off, and binary64: everything at once.
    if (!cached) return (*sequence)->pass(ids, {0, all, 0}, {})->logits;
    auto pass = (*sequence)->pass(ids.first(static_cast<std::size_t>(n)), {0, n, 0}, {});
    for (std::int64_t row = n; row < all; ++row) {
      pass = (*sequence)->pass(ids.first(static_cast<std::size_t>(row + 1)), {row, 1, row}, {});
    }
    return pass->logits;
  };
  const std::vector<double> on = logits({}, true);
  const std::vector<double> off = logits({}, false);
  const std::vector<double> exact = logits({{"noise", "0"}}, false);
  const auto a = static_cast<std::size_t>(std::ranges::max_element(on) - on.begin());
  const auto b = static_cast<std::size_t>(std::ranges::max_element(off) - off.begin());
  EXPECT_NE(a, b);
  EXPECT_EQ(best->tokens[path_on], static_cast<std::int64_t>(a));
  EXPECT_EQ(best->tokens[path_off], static_cast<std::int64_t>(b));
  EXPECT_EQ(best->exact, exact[a] - exact[b]);
  EXPECT_EQ(best->differences[path_on], on[a] - on[b]);
  EXPECT_EQ(best->differences[path_off], off[a] - off[b]);
  double worst = 0;
  for (std::size_t i = 0; i < on.size(); ++i) worst = std::max(worst, std::abs(on[i] - exact[i]));
  EXPECT_EQ(best->largest_error[path_on], worst);
  EXPECT_EQ(best->unit(), 2 * (best->largest_error[0] + best->largest_error[1]));
  EXPECT_LE(best->ratio(), 1);
  // bfloat16 has 8 bits, binary64 53; taken 1024 times as large.
  EXPECT_EQ(best->judge_error, best->unit() * 0x1p-35);
  // The case computed again says the same, of this model alone.
  const auto read = parse_model_case(to_text(flip_case));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, flip_case);
  const auto again = scorer->judge(*read);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->exact, best->exact);
  EXPECT_EQ(again->differences, best->differences);
  ModelCase other = flip_case;
  other.model_sha256 = std::string(64, '1');
  EXPECT_FALSE(scorer->judge(other));
  other = flip_case;
  other.ids.back() = 16;  // the vocabulary has 16
  EXPECT_FALSE(scorer->judge(other));
}

TEST(ModelShrink, LeavesFewerTokensOfTheSameClaim) {
  TwoArmEngine engine;
  const auto scorer = ModelScorer::make(engine, on_and_off(), 12);
  ASSERT_TRUE(scorer);
  ModelSearch search(*scorer, prompts(), {.seed = 0, .islands = 4});
  ASSERT_TRUE(search.run(200, always));
  const ModelFlip* const best = search.best();
  ASSERT_NE(best, nullptr);
  const ModelCase& whole = best->flip_case;
  const auto shrunk = shrink(*scorer, whole, 0, 1000);
  ASSERT_TRUE(shrunk) << shrunk.error().message;
  EXPECT_TRUE(shrunk->complete);
  EXPECT_TRUE(shrunk->flip.holds());
  EXPECT_EQ(shrunk->value_before, best->ratio());
  EXPECT_EQ(shrunk->floor, 0.25 * best->ratio());
  EXPECT_GE(shrunk->flip.ratio(), shrunk->floor);
  const ModelCase& left = shrunk->flip.flip_case;
  EXPECT_EQ(shrunk->before.prompt_tokens + shrunk->before.generated_tokens, std::ssize(whole.ids));
  EXPECT_EQ(shrunk->after.prompt_tokens + shrunk->after.generated_tokens, std::ssize(left.ids));
  EXPECT_LT(left.ids.size(), whole.ids.size());
  EXPECT_GE(left.prompt_tokens, 1);
  EXPECT_TRUE(std::ranges::includes(std::multiset<TokenId>(whole.ids.begin(), whole.ids.end()),
                                    std::multiset<TokenId>(left.ids.begin(), left.ids.end())));
  // It replays from its text, and shrinking it again changes nothing: the floor is part of it.
  const auto read = parse_model_case(to_text(left));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, left);
  const auto again = scorer->judge(*read);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ratio(), shrunk->flip.ratio());
  EXPECT_EQ(shrink(*scorer, *read, 0, 1000)->flip.flip_case, left);
  // A floor that nothing reaches, a limit, and a case without a flip.
  EXPECT_EQ(shrink(*scorer, whole, 2 * best->ratio(), 10).error().kind, ErrorKind::cannot_tell);
  const auto cut = shrink(*scorer, whole, 0, 1);
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->complete);
  EXPECT_EQ(cut->tried, 1);
  ModelCase even = whole;
  even.arms[path_off] = even.arms[path_on];
  EXPECT_EQ(shrink(*ModelScorer::make(engine, even.arms, 1), even, 0, 10).error().kind,
            ErrorKind::cannot_tell);
}

TEST(ModelSearch, MutationsStayWithinBounds) {
  Random random({1, 2, 0});
  std::set<Prompt> seen;
  Prompt current = prompts()[0];
  for (int i = 0; i < 3000; ++i) {
    current = mutated(current, prompts(), 9, random);
    ASSERT_GE(current.size(), 1U);
    ASSERT_LE(current.size(), 9U);
    for (const TokenId id : current) {
      ASSERT_GE(id, 1);
      ASSERT_LE(id, 12);
    }
    seen.insert(current);
  }
  EXPECT_GT(seen.size(), 2000U);
}

TEST(ModelCase, RefusesWhatIsNone) {
  const std::string good =
      "kvsim flip case 1\nkind model\nmodel some model\nsha256 " + std::string(64, 'a') +
      "\non live:dispatch=h100\noff off:dispatch=h100\nfloor 0.25\nprompt-tokens 2\nids\n"
      "1 2\n3\nend\n";
  const auto read = parse_model_case(good);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(is_model_case("# by hand\n" + good));
  EXPECT_EQ(read->model, "some model");
  EXPECT_EQ(read->ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(read->prompt_tokens, 2);
  EXPECT_EQ(read->floor, 0.25);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string(), changed("case 1", "case 2"), changed("kind model", "kind sum"),
        changed(std::string(64, 'a'), "aa"), changed("on live", "on sideways"),
        changed("floor 0.25", "floor 0"), changed("tokens 2", "tokens 0"),
        changed("tokens 2", "tokens 4"), changed("1 2", "1 -2"), changed("1 2", "1 x"),
        changed("end\n", ""), good + "more\n"}) {
    const auto refused = parse_model_case(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::file);
    EXPECT_TRUE(refused.error().message.starts_with("line "));
  }
  EXPECT_FALSE(is_model_case(changed("kind model", "kind sum")));
}

}  // namespace
}  // namespace kvsim::fuzz
