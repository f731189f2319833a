// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run/divergence.h"
#include "tests/model/test_file.h"
#include "tests/run/fake_engine.h"

namespace kvsim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Arm arm_of(std::string_view text) {
  const Result<Arm> arm = parse_arm(text);
  EXPECT_TRUE(arm) << text;
  return arm ? *arm : Arm{};
}

RunOptions options_of(std::initializer_list<std::string_view> arms, std::int64_t new_tokens = 5) {
  RunOptions options;
  for (const std::string_view arm : arms) options.arms.push_back(arm_of(arm));
  options.max_new_tokens = new_tokens;
  options.version = "1";
  return options;
}

const std::vector<RunPrompt> three_prompts{{0, {3, 1, 4}}, {1, {1, 5}}, {7, {9, 2, 6, 5}}};

/// Everything that a run hands out.
struct Outcome {
  std::vector<RecordLine> lines;
  std::map<std::tuple<std::int64_t, std::size_t, std::int64_t>, std::vector<double>> logits;
  RunSummary summary;
  std::string error;

  template <class Kind>
  [[nodiscard]] std::vector<Kind> of() const {
    std::vector<Kind> result;
    for (const RecordLine& line : lines) {
      if (const Kind* record = std::get_if<Kind>(&line)) result.push_back(*record);
    }
    return result;
  }
  [[nodiscard]] std::string text() const {
    std::string result;
    for (const RecordLine& line : lines) result += to_line(line);
    return result;
  }
  [[nodiscard]] std::vector<std::int64_t> tokens(std::int64_t prompt, std::string_view arm) const {
    std::vector<std::int64_t> result;
    for (const StepRecord& step : of<StepRecord>()) {
      if (step.prompt == prompt && step.arm == arm) result.push_back(step.token);
    }
    return result;
  }
};

Outcome run_of(const test::FakeEngine& engine, const RunOptions& options,
               const std::vector<RunPrompt>& prompts) {
  Outcome outcome;
  const Result<PreparedRun> run = PreparedRun::make(engine, options, prompts);
  if (!run) {
    outcome.error = run.error().message;
    return outcome;
  }
  std::mutex mutex;
  RunOutput output;
  output.line = [&](const RecordLine& line) -> Result<bool> {
    outcome.lines.push_back(line);
    return true;
  };
  output.dump = [&](const StepDump& step) -> Result<bool> {
    const std::lock_guard lock(mutex);
    outcome.logits[{step.prompt, step.arm, step.step}] = {step.logits.begin(), step.logits.end()};
    return true;
  };
  const Result<RunSummary> summary = run->run(output);
  if (summary) outcome.summary = *summary;
  if (!summary) outcome.error = summary.error().message;
  return outcome;
}

std::string refusal(const RunOptions& options, const std::vector<RunPrompt>& prompts) {
  const test::FakeEngine engine;
  const Result<PreparedRun> run = PreparedRun::make(engine, options, prompts);
  if (run) return "accepted";
  test::expect_one_line(run.error());
  EXPECT_EQ(run.error().kind, ErrorKind::usage);
  return run.error().message;
}

TEST(RunLoop, WritesPromptsStepsAndComparisonsInOrder) {
  const test::FakeEngine engine;
  const Outcome run = run_of(engine, options_of({"live@a", "off@b", "off@c"}, 2), three_prompts);
  std::vector<std::string> found;
  for (const RecordLine& line : run.lines) {
    if (const auto* head = std::get_if<PromptRecord>(&line)) {
      found.push_back("prompt " + std::to_string(head->prompt));
    } else if (const auto* step = std::get_if<StepRecord>(&line)) {
      found.push_back(step->arm + std::to_string(step->step));
    } else {
      const auto& pair = std::get<ComparisonRecord>(line);
      found.push_back(pair.first + pair.second + std::to_string(pair.step));
    }
  }
  std::vector<std::string> expected;
  for (const char* prompt : {"prompt 0", "prompt 1", "prompt 7"}) {
    for (const char* line :
         {prompt, "a0", "b0", "c0", "ab0", "ac0", "a1", "b1", "c1", "ab1", "ac1"}) {
      expected.emplace_back(line);
    }
  }
  EXPECT_EQ(found, expected);
  const PromptRecord head = run.of<PromptRecord>().at(2);
  EXPECT_THAT(head.prompt_ids, ElementsAre(9, 2, 6, 5));
  EXPECT_EQ(head.run.engine, "fake");
  EXPECT_THAT(head.run.arms,
              ElementsAre(RecordArm{"a", "live", "usual"}, RecordArm{"b", "off", "usual"},
                          RecordArm{"c", "off", "usual"}));
}

// The plans are tested by themselves; here each step's passes are the plan's continuation.
TEST(RunLoop, MakesThePassesOfThePlan) {
  for (const std::string_view constructor : {"live", "all-token-wise", "one-shot", "chunked(2)",
                                             "aligned-chunk(2)", "prefix-hit(4,2)", "off"}) {
    const test::FakeEngine engine;
    const RunOptions options = options_of({constructor}, 4);
    const Outcome run = run_of(engine, options, {three_prompts[2]});
    std::vector<PlanStep> expected = *cache_plan(options.arms[0], 4, 0);
    for (std::int64_t made = 0; made < 3; ++made) {
      const auto passes = next_passes(options.arms[0], 4, made);
      expected.insert(expected.end(), passes->begin(), passes->end());
    }
    EXPECT_EQ(engine.fake.passes, expected) << constructor;
    const std::vector<std::int64_t> tokens = run.tokens(7, options.arms[0].label);
    ASSERT_EQ(tokens.size(), 4U);
    // The last pass was fed the prompt and every token but the last.
    EXPECT_THAT(engine.fake.fed.back(), ElementsAre(9, 2, 6, 5, tokens[0], tokens[1], tokens[2]));
  }
}

TEST(RunLoop, RebuildsTheCacheOfATokenWiseArm) {
  const test::FakeEngine engine;
  const Outcome run = run_of(engine, options_of({"live@a", "token-wise@b"}, 3), three_prompts);
  for (const ComparisonRecord& pair : run.of<ComparisonRecord>()) {
    EXPECT_EQ(pair.differing_logits, 0) << pair.step;
    EXPECT_EQ(pair.kl, 0);
  }
  EXPECT_EQ(engine.fake.passes[2], (PlanStep{3, 1, 3}));  // step 1 of a, then of b:
  EXPECT_EQ(engine.fake.passes[3], (PlanStep{0, 3, 0}));
  EXPECT_EQ(engine.fake.passes[4], (PlanStep{3, 1, 3}));
}

TEST(RunLoop, ArmsAreEqualWhereKernelsDoNotDependOnShapes) {
  const test::FakeEngine engine;
  const Outcome run =
      run_of(engine,
             options_of({"live:invariant=yes@a", "off:invariant=yes@b",
                         "chunked(2):invariant=yes@c", "all-token-wise:invariant=yes@d", "off@e"}),
             three_prompts);
  int differing = 0;
  for (const ComparisonRecord& pair : run.of<ComparisonRecord>()) {
    if (pair.second == "e") {
      differing += pair.differing_logits > 0 ? 1 : 0;
    } else {
      EXPECT_EQ(pair.differing_logits, 0) << pair.second;
    }
  }
  EXPECT_GT(differing, 0);
}

TEST(RunLoop, ComparesTheLogitsOfBothArms) {
  const test::FakeEngine engine;
  const Outcome run = run_of(engine, options_of({"live@a", "off:noise=22@b"}), three_prompts);
  bool has_flip = false;
  for (const ComparisonRecord& pair : run.of<ComparisonRecord>()) {
    const std::vector<double>& p = run.logits.at({pair.prompt, 0, pair.step});
    const std::vector<double>& q = run.logits.at({pair.prompt, 1, pair.step});
    const Divergence expected = *divergence(p, q);
    EXPECT_EQ(pair.kl, expected.kl);
    EXPECT_EQ(pair.js, expected.js);
    double largest = 0;
    std::int64_t differing = 0;
    for (std::size_t token = 0; token < p.size(); ++token) {
      largest = std::max(largest, std::abs(p[token] - q[token]));
      differing += p[token] != q[token] ? 1 : 0;
    }
    EXPECT_EQ(pair.largest_logit_difference, largest);
    EXPECT_EQ(pair.differing_logits, differing);
    EXPECT_EQ(pair.top_two_error, top_two_error(p, q));
    const std::vector<std::int64_t> a = run.tokens(pair.prompt, "a");
    const std::vector<std::int64_t> b = run.tokens(pair.prompt, "b");
    const auto steps = pair.step;  // contexts are equal while all tokens before are
    EXPECT_EQ(pair.same_context, std::equal(a.begin(), a.begin() + steps, b.begin()));
    has_flip = has_flip || !pair.same_context;
  }
  EXPECT_TRUE(has_flip);
}

TEST(RunLoop, FeedsEveryArmTheFirstOnesTokensUnderTeacherForcing) {
  const test::FakeEngine engine;
  RunOptions options = options_of({"live@a", "off:noise=22@b"}, 8);
  options.teacher_forced = true;
  const Outcome run = run_of(engine, options, {three_prompts[0]});
  const std::vector<std::int64_t> a = run.tokens(0, "a");
  EXPECT_NE(a, run.tokens(0, "b"));
  std::vector<TokenId> fed{3, 1, 4};
  for (std::size_t i = 0; i + 1 < a.size(); ++i) fed.push_back(static_cast<TokenId>(a[i]));
  EXPECT_EQ(engine.fake.fed.back(), fed);  // the last pass is b's
  for (const ComparisonRecord& pair : run.of<ComparisonRecord>()) EXPECT_TRUE(pair.same_context);
  EXPECT_TRUE(run.of<PromptRecord>().at(0).run.teacher_forced);
}

TEST(RunLoop, StopsEachArmAtAStopToken) {
  test::FakeEngine engine;
  const RunOptions options = options_of({"live@a", "off:noise=22@b"}, 8);
  const Outcome whole = run_of(engine, options, {three_prompts[0]});
  const std::vector<std::int64_t> a = whole.tokens(0, "a");
  const std::vector<std::int64_t> b = whole.tokens(0, "b");
  engine.fake.stop_tokens = {a[2]};
  const auto until = [&](const std::vector<std::int64_t>& tokens) {
    const auto end = std::find(tokens.begin(), tokens.end(), a[2]);
    return std::vector(tokens.begin(), end == tokens.end() ? end : end + 1);
  };
  const Outcome run = run_of(engine, options, {three_prompts[0]});
  EXPECT_EQ(run.tokens(0, "a"), until(a));
  EXPECT_EQ(run.tokens(0, "b"), until(b));
  EXPECT_LT(until(a).size(), 8U);
  EXPECT_NE(until(a).size(), until(b).size());
  EXPECT_EQ(run.of<ComparisonRecord>().size(), std::min(until(a).size(), until(b).size()));
  RunOptions goes_on = options;
  goes_on.stops = false;
  EXPECT_EQ(run_of(engine, goes_on, {three_prompts[0]}).tokens(0, "a"), a);
}

TEST(RunLoop, DrawsTheSameNumbersForEveryArm) {
  const test::FakeEngine engine;
  RunOptions options = options_of({"live@a", "live@b"}, 20);
  options.sampling.temperature = 2;
  const Outcome run = run_of(engine, options, three_prompts);
  EXPECT_EQ(run.tokens(7, "a"), run.tokens(7, "b"));
  options.sampling.seed = 2;
  EXPECT_NE(run_of(engine, options, three_prompts).tokens(7, "a"), run.tokens(7, "a"));
}

TEST(RunLoop, GivesTheSameLinesWithAnyNumberOfThreads) {
  const test::FakeEngine engine;
  std::vector<RunPrompt> prompts;
  for (int i = 0; i < 20; ++i) prompts.push_back({i, {i % 16, 3, (i * 7) % 16}});
  RunOptions options = options_of({"live@a", "off:noise=22@b"});
  options.state_digests = true;
  const std::string one = run_of(engine, options, prompts).text();
  for (const int threads : {2, 7}) {
    options.threads = threads;
    EXPECT_EQ(run_of(engine, options, prompts).text(), one) << threads;
  }
}

TEST(RunLoop, EndsWithTheFirstFailureOfAPrompt) {
  std::vector<RunPrompt> prompts;
  for (int i = 0; i < 8; ++i) prompts.push_back({i, {i, 3}});
  test::FakeEngine engine;
  RunOptions options = options_of({"live@a"});
  const Outcome whole = run_of(engine, options, {prompts.begin(), prompts.begin() + 3});
  engine.fake.fails_at_rows = 4;
  engine.fake.fails_for_token = 2;
  for (const int threads : {1, 7}) {
    options.threads = threads;
    const Outcome run = run_of(engine, options, prompts);
    EXPECT_EQ(run.error, "prompt 2, arm \"a\", step 2: this pass fails");
    // The lines before stand there, and no others.
    EXPECT_EQ(run.lines.size(), 6U + 6U + 3U);
    EXPECT_EQ(run.text(), whole.text().substr(0, run.text().size()));
  }
}

TEST(RunLoop, SaysWhatAPassWasAskedFor) {
  const test::FakeEngine engine;
  RunOptions options = options_of({"chunked(2)@a", "live@b"}, 2);
  options.state_digests = true;
  const Outcome run = run_of(engine, options, {three_prompts[0]});
  const std::vector<StepRecord> steps = run.of<StepRecord>();
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps[0].digests.state.size(), 3U);  // of both chunks
  EXPECT_EQ(steps[0].cost.multiply_adds, 30);
  EXPECT_EQ(steps[2].digests.state.size(), 1U);
  EXPECT_EQ(steps[2].digests.state[0].position, 3);
  EXPECT_EQ(steps[0].digests.layer.size(), 1U);
  const std::vector<double>& logits = run.logits.at({0, 0, 0});
  EXPECT_EQ(steps[0].digests.token, digest_of(std::span<const double>(logits)));
  EXPECT_THAT(run.summary.exp_bounded, ElementsAre(true, true));
  const Outcome shorter = run_of(engine, options_of({"off@a", "live@b"}, 2), {three_prompts[0]});
  EXPECT_THAT(shorter.summary.exp_bounded, ElementsAre(false, true));
  EXPECT_TRUE(shorter.of<StepRecord>().at(0).digests.state.empty());
}

TEST(RunLoop, TakesLaunchSettingsOutOfAnArm) {
  const test::FakeEngine engine;
  RunOptions options = options_of(
      {"live@a", "live:batch=alone@b", "live:batch=3,padding=right@c", "live:verify-width=4@d"}, 1);
  options.launch.neighbours = {9, 8};
  options.launch.padding = Padding::left;
  const Outcome run = run_of(engine, options, {three_prompts[0]});
  EXPECT_EQ(run.error, "");
  EXPECT_THAT(
      engine.fake.launches,
      ElementsAre(Launch{3, {9, 8}, Padding::left, 1}, Launch{3, {}, Padding::left, 1},
                  Launch{3, {3, 3}, Padding::right, 1}, Launch{3, {9, 8}, Padding::left, 4}));
  EXPECT_EQ(run.of<PromptRecord>().at(0).run.arms[2].text, "live:batch=3,padding=right");
}

TEST(RunLoop, RefusesWhatItCannotRunBeforeItRuns) {
  EXPECT_EQ(refusal(options_of({}), three_prompts), "0 arms; accepted: 1 to 16");
  EXPECT_THAT(refusal(options_of({"on", "live"}), three_prompts),
              HasSubstr("two arms have the label \"live\"; accepted: unequal ones"));
  EXPECT_THAT(refusal(options_of({"on"}, 0), three_prompts), HasSubstr("0 new tokens; accepted"));
  EXPECT_EQ(refusal(options_of({"on"}), {}), "no prompt; accepted: one prompt or more");
  EXPECT_EQ(refusal(options_of({"on"}), {{4, {}}}),
            "prompt 4: no tokens; accepted: one token or more");
  EXPECT_EQ(refusal(options_of({"on"}), {{0, {1, 16}}}),
            "prompt 0: token id 16; accepted: 0 to 15, the model's vocabulary");
  EXPECT_EQ(refusal(options_of({"on"}), {{0, {-1}}}),
            "prompt 0: token id -1; accepted: 0 to 15, the model's vocabulary");
  EXPECT_EQ(refusal(options_of({"on"}, 62), {{0, {1, 2, 3}}}),
            "prompt 0: 3 tokens and 62 new ones; accepted: 64 together, the model's longest "
            "context");
  EXPECT_EQ(refusal(options_of({"on"}, 61), {{0, {1, 2, 3}}}), "accepted");
  EXPECT_THAT(refusal(options_of({"prefix-hit(4,2)"}), {{0, {1, 2, 3}}}),
              HasSubstr("prompt 0: arm prefix-hit(4,2): a prefix of 4 tokens of a prompt of 3"));
  EXPECT_THAT(refusal(options_of({"on"}), {{5, {1}}, {5, {1}}}),
              HasSubstr("two prompts have the number 5"));
  EXPECT_EQ(refusal(options_of({"on:speed=3"}), three_prompts),
            "arm \"live:speed=3\": key \"speed\"; accepted: invariant, noise");
  EXPECT_EQ(refusal(options_of({"on:batch=0@x"}), three_prompts),
            "arm \"x\": batch is \"0\"; accepted: alone, or 1 to 1024");
  EXPECT_EQ(refusal(options_of({"on:padding=up@x"}), three_prompts),
            "arm \"x\": padding is \"up\"; accepted: none, left, right");
  EXPECT_EQ(refusal(options_of({"on:verify-width=65@x"}), three_prompts),
            "arm \"x\": verify-width is \"65\"; accepted: 1 to 64");
  RunOptions hot = options_of({"on"});
  hot.sampling.temperature = -1;
  EXPECT_THAT(refusal(hot, three_prompts), HasSubstr("temperature -1; accepted"));
}

}  // namespace
}  // namespace kvsim
