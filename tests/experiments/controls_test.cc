// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/controls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/compare_bits.h"
#include "experiments/controls/control.h"
#include "experiments/controls/control_arms.h"
#include "experiments/protocol/along_text.h"
#include "tests/experiments/fake_setup.h"

/// The controls on a small random model: green without a defect, and which ones see which defect.
namespace kvsim::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

class Controls : public testing::Test {
 protected:
  /// What the controls say of two arms.
  [[nodiscard]] StudySummary controls_of(std::string_view on, std::string_view off) {
    StudySetup setup;
    setup.engine = engine_.get();
    setup.on = test::arm_of(on);
    setup.off = test::arm_of(off);
    setup.prompts = {{{0, {17, 48, 48, 58, 66, 49, 82}}, "1"}, {{1, {5, 17, 3, 80, 11}}, "2"}};
    setup.version = "test";
    const StudySetup small = controls_setup(setup);
    const StudyRow& row = controls_row();
    const std::unique_ptr<Study> study = row.make();
    StudyRecords records;
    const auto units = study->units(small);
    EXPECT_TRUE(units);
    for (const StudyUnit& unit : *units) {
      const auto values = study->compute(small, unit);
      EXPECT_TRUE(values) << unit.part << ": " << values.error().message;
      if (values) records.units.push_back({unit, *values});
    }
    const auto summary = summarize(row, records);
    EXPECT_TRUE(summary) << summary.error().message;
    return summary ? *summary : StudySummary{};
  }
  [[nodiscard]] std::vector<int> failed(std::string_view on, std::string_view off) {
    return controls_of(on, off).result.at("failed").get<std::vector<int>>();
  }

  std::unique_ptr<Engine> engine_ = test::engine_of("llama-llama3");
};

TEST_F(Controls, AreGreenWithoutADefect) {
  const StudySummary summary = controls_of("live", "off");
  EXPECT_EQ(summary.failed, "");
  EXPECT_THAT(summary.headline, HasSubstr("green"));
  EXPECT_THAT(summary.result.at("failed"), IsEmpty());
  EXPECT_EQ(summary.tables.at(0).rows.size(), control_rows().size());
  EXPECT_THAT(failed("live:dispatch=fp32", "off:dispatch=fp32"), IsEmpty());
}

TEST_F(Controls, SeeADefectOfOneArm) {
  const StudySummary summary = controls_of("live", "off:plant=mask-missing");
  EXPECT_EQ(summary.failed, "controls 2, 3, 7, 11 failed");
  EXPECT_THAT(summary.headline, HasSubstr("4 failed (2, 3, 7, 11)"));
  EXPECT_THAT(failed("live:plant=position+1", "off"), IsSupersetOf({3, 15}));
}

TEST(ControlRows, AreTheSixteenInTheirOrder) {
  ASSERT_EQ(control_rows().size(), 16U);
  for (int i = 0; i < 16; ++i) {
    const ControlRow& row = control_rows()[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.number, i + 1);
    EXPECT_LE(row.name.size(), 30U) << row.name;
    EXPECT_FALSE(row.rounding.empty() || row.artefact.empty() || row.judged.empty());
  }
}

TEST(ControlsSetup, TakesTheFirstTokensOfTheFirstPrompts) {
  test::FakeSetup fake(5);
  fake.setup.prompts[1].prompt.ids.assign(100, 7);
  const StudySetup small = controls_setup(fake.setup);
  ASSERT_EQ(small.prompts.size(), 3U);
  EXPECT_EQ(small.prompts[0].prompt, fake.setup.prompts[0].prompt);
  EXPECT_EQ(small.prompts[1].prompt.ids.size(), 32U);
  EXPECT_FALSE(small.stops);
  // An arm that needs more gets more.
  fake.setup.off = test::arm_of("prefix-hit(40,8):noise=20");
  EXPECT_EQ(controls_setup(fake.setup).prompts[1].prompt.ids.size(), 64U);
}

TEST(ControlsPath, IsThatOfTheArmsAndTheFirstPrompts) {
  test::FakeSetup fake(5);
  const auto path = [&] { return controls_path(controls_setup(fake.setup), "f").value(); };
  const std::string first = path();
  EXPECT_THAT(first, testing::MatchesRegex("f/controls-[0-9a-f]{16}\\.jsonl"));
  fake.setup.new_tokens = 99;
  fake.setup.seeds = {5};
  fake.setup.prompts.pop_back();
  EXPECT_EQ(path(), first);
  fake.setup.off = test::arm_of("chunked(2):noise=20");
  EXPECT_NE(path(), first);
  fake.setup.off = test::arm_of("off:noise=20");
  EXPECT_EQ(path(), first);
  fake.setup.prompts[0].prompt.ids.back() = 1;
  EXPECT_NE(path(), first);
}

/// The fake engine with other answers to what decides results.
struct OtherEngine : test::FakeEngine {
  std::string digest = std::string(64, '0');
  std::string format = "binary32";
  std::string engine = "fake";
  std::string environment;

  std::string name() const override { return engine; }
  std::string model_sha256() const override { return digest; }
  std::string storage() const override { return format; }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override {
    struct Arm : test::FakeArm {
      using FakeArm::FakeArm;
      std::string environment;
      std::string dispatch() const override { return "usual" + environment; }
    };
    static_cast<void>(settings);
    auto made = std::make_unique<Arm>(fake);
    made->environment = environment;
    return std::unique_ptr<EngineArm>(std::move(made));
  }
};

TEST(ControlsPath, HangsOnAllThatChangesResultsAndOnNothingElse) {
  OtherEngine engine;
  test::FakeSetup fake(3);
  fake.setup.engine = &engine;
  const auto path = [&] { return controls_path(controls_setup(fake.setup), "f").value(); };
  const std::string first = path();
  for (std::string* const each :
       {&engine.digest, &engine.format, &engine.engine, &engine.environment, &fake.setup.version}) {
    const std::string before = *each;
    *each += "1";
    EXPECT_NE(path(), first) << before;
    *each = before;
    EXPECT_EQ(path(), first);
  }
  for (Arm* const arm : {&fake.setup.on, &fake.setup.off}) {
    const Arm before = *arm;
    *arm = with_settings(*arm, "dispatch=exact").value();
    EXPECT_NE(path(), first);
    *arm = with_settings(before, "storage=binary16").value();
    EXPECT_NE(path(), first);
    *arm = before;
  }
  std::vector<TokenId>& ids = fake.setup.prompts[2].prompt.ids;
  ids.push_back(1);
  EXPECT_NE(path(), first);
  ids.pop_back();
  fake.setup.prompts[2].prompt.number += 1;  // random numbers hang on it
  EXPECT_NE(path(), first);
  fake.setup.prompts[2].prompt.number -= 1;
  // The study's own: how long its texts are, how tokens are chosen, what is known of its prompts.
  fake.setup.new_tokens += 9;
  fake.setup.seeds = {4, 5};
  fake.setup.stops = !fake.setup.stops;
  fake.setup.strategies = {strategy_named("top-p").value()};
  fake.setup.prompts[0].answer = "77";
  fake.setup.decode = [](std::span<const TokenId>) { return std::string("text"); };
  EXPECT_EQ(path(), first);
}

TEST(WithSettings, ADispatchDropsLinesAndKeepsFormats) {
  const Arm arm = test::arm_of(
      "off:attention.decode=h100-fa3,format.kv=binary16,storage=binary16,"
      "plant=causal-leak");
  EXPECT_EQ(to_text(with_settings(arm, "dispatch=exact").value()),
            "off:dispatch=exact,format.kv=binary16,plant=causal-leak,storage=binary16");
  EXPECT_EQ(to_text(with_settings(arm, "storage=bfloat16,plant=scale-doubled").value()),
            "off:attention.decode=h100-fa3,format.kv=binary16,plant=scale-doubled,"
            "storage=bfloat16");
  EXPECT_EQ(with_settings(arm, "").value(), arm);
  EXPECT_EQ(to_text(with_formats_of(test::arm_of("off:kv=binary16,plant=causal-leak"),
                                    test::arm_of("live:head=binary32,plant=scale-doubled"))),
            "off:head=binary32,plant=causal-leak");
}

TEST_F(Controls, AnEngineSaysWhatItLacks) {
  const Arm live = test::arm_of("live");
  const auto arm = first_accepted(
      *engine_, live, std::array<std::string_view, 2>{"attention=eager", "dispatch=exact"});
  ASSERT_TRUE(arm);
  EXPECT_EQ(arm->engine->dispatch(), "exact");
  const auto none = first_accepted(*engine_, live, std::array<std::string_view, 1>{"plant=none"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::unavailable);
  // FlashAttention takes no float32: the kernels say so, before anything is computed.
  EXPECT_FALSE(first_accepted(*engine_, live, std::array<std::string_view, 1>{"storage=binary32"}));
  EXPECT_EQ(unit_roundoff(prepare(*engine_, live).value()).value(), 0x1p-8);
}

TEST(SameBits, TellsZerosApartAndTakesNansAsEqual) {
  EXPECT_TRUE(same_bits(std::vector<double>{1, NAN}, std::vector<double>{1, -NAN}));
  EXPECT_FALSE(same_bits(std::vector{0.0}, std::vector{-0.0}));
  EXPECT_FALSE(same_bits(std::vector{1.0}, std::vector{1.0, 2.0}));
}

TEST(AlongText, FeedsAllArmsTheFirstOnesTokens) {
  test::FakeSetup fake(1);
  const StudyArm on = prepare(fake.engine, fake.setup.on).value();
  const StudyArm off = prepare(fake.engine, fake.setup.off).value();
  const std::vector<TokenId> prompt{4, 2};
  const std::vector<TokenId> other{2};
  std::vector<std::vector<TokenId>> fed;
  const auto visit = [&](const AlongStep& step) -> Result<bool> {
    fed = {{step.sequences[0].tokens().begin(), step.sequences[0].tokens().end()},
           {step.sequences[1].tokens().begin(), step.sequences[1].tokens().end()}};
    return true;
  };
  const std::array arms{AlongArm{&on, prompt}, AlongArm{&off, other}};
  const auto choose = [](const AlongStep& step) { return static_cast<TokenId>(step.step + 9); };
  ASSERT_TRUE(along_text(arms, {.new_tokens = 3, .choose = choose}, visit));
  EXPECT_THAT(fed, ElementsAre(ElementsAre(4, 2, 9, 10), ElementsAre(2, 9, 10)));
}

}  // namespace
}  // namespace kvsim::experiments
