// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/work.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/study.h"
#include "run/kept_rows.h"
#include "tests/experiments/fake_setup.h"
#include "tests/experiments/sim_setup.h"

/// What pieces of work say that they compute, against hand counts and against what they compute.
namespace kvsim::experiments {
namespace {

/// Rows that sequences of a CountingEngine were asked for, and computed.
std::int64_t asked = 0;

class CountingSequence : public EngineSequence {
 public:
  explicit CountingSequence(std::unique_ptr<EngineSequence> inner) : inner_(std::move(inner)) {}

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override {
    auto done = inner_->pass(tokens, step, request);
    if (done) asked += step.rows;
    return done;
  }
  StateShape state_shape() const override { return inner_->state_shape(); }
  Result<std::vector<double>> state(const StateBlock& block) const override {
    return inner_->state(block);
  }
  Result<bool> set_state(const StateBlock& block, std::span<const double> numbers) override {
    return inner_->set_state(block, numbers);
  }
  void clear() override { inner_->clear(); }
  Result<std::unique_ptr<EngineSequence>> save() const override {
    auto saved = inner_->save();
    if (!saved) return saved;
    return std::unique_ptr<EngineSequence>(std::make_unique<CountingSequence>(std::move(*saved)));
  }

 private:
  std::unique_ptr<EngineSequence> inner_;
};

class CountingArm : public EngineArm {
 public:
  explicit CountingArm(std::unique_ptr<EngineArm> inner) : inner_(std::move(inner)) {}

  std::string dispatch() const override { return inner_->dispatch(); }
  const softfloat::Format& logit_format() const override { return inner_->logit_format(); }
  const softfloat::Format& activation_format() const override {
    return inner_->activation_format();
  }
  Result<std::vector<ExplainedOperator>> explain(const PlanStep& step,
                                                 const Launch& launch) const override {
    return inner_->explain(step, launch);
  }
  Result<std::unique_ptr<EngineSequence>> open(std::int64_t capacity,
                                               const Launch& launch) const override {
    auto opened = inner_->open(capacity, launch);
    if (!opened) return opened;
    return std::unique_ptr<EngineSequence>(std::make_unique<CountingSequence>(std::move(*opened)));
  }

 private:
  std::unique_ptr<EngineArm> inner_;
};

/// The simulator, which keeps no rows, and what is asked of it.
class CountingEngine : public Engine {
 public:
  std::string name() const override { return inner_->name(); }
  std::string model() const override { return inner_->model(); }
  std::string model_sha256() const override { return inner_->model_sha256(); }
  std::string storage() const override { return inner_->storage(); }
  std::int64_t vocabulary() const override { return inner_->vocabulary(); }
  std::int64_t max_positions() const override { return inner_->max_positions(); }
  std::vector<std::int64_t> stop_tokens() const override { return inner_->stop_tokens(); }
  Result<ScoreRule> score_rule(std::int64_t layer) const override {
    return inner_->score_rule(layer);
  }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override {
    auto arm = inner_->arm(settings);
    if (!arm) return arm;
    return std::unique_ptr<EngineArm>(std::make_unique<CountingArm>(std::move(*arm)));
  }

 private:
  std::unique_ptr<Engine> inner_ = test::engine_of("llama-llama3", 1, CommonRows::recomputed);
};

std::int64_t text_of(const Engine& engine, const char* arm, std::int64_t prompt,
                     std::int64_t steps) {
  Result<ArmWork> work = ArmWork::of(engine, test::arm_of(arm));
  EXPECT_TRUE(work) << work.error().message;
  const Result<std::int64_t> text = work->text(prompt, steps);
  EXPECT_TRUE(text) << text.error().message;
  return *text;
}

TEST(Work, OfTextsIsCountedByHand) {
  const test::FakeEngine fake;  // keeps no rows
  EXPECT_EQ(text_of(fake, "live", 10, 4), 10 + 1 + 1 + 1);
  EXPECT_EQ(text_of(fake, "off", 10, 4), 10 + 11 + 12 + 13);
  // 10; 10, 1; 10, 1, 1: a cache that is made anew for each token.
  EXPECT_EQ(text_of(fake, "token-wise", 10, 3), 10 + 11 + 12);
  EXPECT_EQ(text_of(fake, "all-token-wise", 10, 3), 12);
  // Chunks 0 … 3, 4 … 7, 8 … 9, then the last chunk with one row more, and with two; then a new
  // one.
  EXPECT_EQ(text_of(fake, "aligned-chunk(4)", 10, 4), 10 + 3 + 4 + 1);
  EXPECT_EQ(text_of(fake, "off", 10, 0), 0);
}

// Kernels of batch-invariant sum alike whatever the rows of a pass, and the engine says whether it
// uses that.
TEST(Work, KeptRowsAreNotComputed) {
  const auto keeps = test::engine_of("llama-llama3");
  const auto computes = test::engine_of("llama-llama3", 1, CommonRows::recomputed);
  constexpr const char* off = "off:dispatch=batch-invariant";
  EXPECT_EQ(text_of(*keeps, off, 10, 4), 10 + 1 + 1 + 1);
  EXPECT_EQ(text_of(*computes, off, 10, 4), 10 + 11 + 12 + 13);
  // A pass that does not begin with row 0 leaves no rows for the next one that does.
  EXPECT_EQ(text_of(*keeps, "token-wise:dispatch=batch-invariant", 10, 3), 10 + 11 + 12);
}

// A launch with anything beside the sequence computes every row.
TEST(Work, NeighboursAndPaddingKeepNoRows) {
  const auto engine = test::engine_of("llama-llama3");
  const auto arm = engine->arm(test::arm_of("off:dispatch=batch-invariant").settings);
  ASSERT_TRUE(arm);
  const auto* const keeper = dynamic_cast<const KeepsRows*>(arm->get());
  ASSERT_NE(keeper, nullptr);
  EXPECT_TRUE(keeper->keeps_rows(12, 13, {.prompt_tokens = 12}));
  EXPECT_FALSE(keeper->keeps_rows(12, 13, {.prompt_tokens = 12, .neighbours = {12}}));
  EXPECT_FALSE(keeper->keeps_rows(
      12, 13, {.prompt_tokens = 12, .neighbours = {20}, .padding = Padding::left}));
}

/// Whether a piece takes seeded numbers alone, and no model.
bool is_seeded(std::string_view part) {
  return part == "lengths" || part == "grid" || part.starts_with("R ") ||
         part.starts_with("head_dim ");
}

/// What the pieces of a study say that they compute, and what they ask for.
struct Counts {
  std::int64_t said = 0;
  std::int64_t asked = 0;
};

/// Sums by part.
std::map<std::string, Counts> counts_of(const char* name, const StudySetup& setup) {
  const auto study = (*study_named(name).value()).make();
  const auto units = study->units(setup);
  EXPECT_TRUE(units) << units.error().message;
  std::map<std::string, Counts> sums;
  for (const StudyUnit& unit : *units) {
    if (is_seeded(unit.part)) continue;
    asked = 0;
    const Result<Json> values = study->compute(setup, unit);
    EXPECT_TRUE(values) << values.error().message;
    sums[unit.part].said += unit.rows;
    sums[unit.part].asked += asked;
  }
  return sums;
}

/// Two prompts, whose texts do not part: both arms have kernels that sum alike.
test::SimSetup counted_setup(const Engine& engine, const std::string& settings) {
  test::SimSetup sim(settings);
  sim.setup.engine = &engine;
  sim.setup.prompts.resize(2);
  sim.setup.prompts[1].prompt.ids.resize(23);
  sim.setup.new_tokens = 9;
  return sim;
}

TEST(Work, OfStudiesIsWhatTheyAskFor) {
  const CountingEngine engine;
  const test::SimSetup sim = counted_setup(engine, "dispatch=batch-invariant");
  for (const char* name : {"behaviour", "drift", "noise", "replay", "refresh", "gqa", "falsify",
                           "high-precision-cache"}) {
    for (const auto& [part, sums] : counts_of(name, sim.setup)) {
      EXPECT_EQ(sums.said, sums.asked) << name << ", " << part;
    }
  }
}

TEST(Work, OfStudiesWhoseTextsPartIsNear) {
  const CountingEngine engine;
  const test::SimSetup sim = counted_setup(engine, "dispatch=cpu,storage=bf16,head=f32");
  for (const char* name : {"boundary", "localise", "precision"}) {
    for (const auto& [part, sums] : counts_of(name, sim.setup)) {
      // The second text of one that parts is computed twice from there on; fewer forks are tried
      // where the first one parts.
      const auto said = static_cast<double>(sums.said);
      EXPECT_GE(static_cast<double>(sums.asked), said * 0.6) << name << ", " << part;
      EXPECT_LE(static_cast<double>(sums.asked), said * 1.6) << name << ", " << part;
    }
  }
}

TEST(Work, OfUnitsIsCountedByHand) {
  const test::FakeSetup fake(2);
  const StudySetup& setup = fake.setup;  // prompts of 4 tokens, 6 new ones
  const auto units = (*study_named("behaviour").value()).make()->units(setup);
  ASSERT_TRUE(units) << units.error().message;
  // On: 4 + 5 rows. Off: 4 + 5 + … + 9. Unrelated: two texts with the cache.
  EXPECT_EQ(units->front().part, "greedy");
  EXPECT_EQ(units->front().rows, 9 + 39);
  EXPECT_EQ((*units)[2].part, "greedy, unrelated");
  EXPECT_EQ((*units)[2].rows, 18);
}

}  // namespace
}  // namespace kvsim::experiments
