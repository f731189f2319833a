// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control.h"
#include "experiments/controls/controls.h"
#include "experiments/controls/measures.h"
#include "experiments/controls/predicted.h"
#include "model/checkpoint.h"
#include "model/tokenizer.h"
#include "run/sim_engine.h"
#include "tests/run/engine_runs.h"

/// Defects on purpose in kv-tiny, in every format: what is allowed comes from predict, so each must
/// be red and rounding alone green whatever the format is.
namespace kvsim::experiments {
namespace {

using testing::Not;
using testing::StartsWith;

constexpr std::string_view questions[] = {
    "Jonas has 4 bags with 5 cards in each. Jonas buys 5 packs of 4 cards. How many cards does "
    "Jonas have now?",
    "Mia has 12 apples and gives away 3. How many apples does she have left after buying 8 more?",
    "A train has 7 cars with 9 seats each. How many seats are there?"};

/// Settings of a format.
struct FormatRow {
  std::string_view name;
  std::string_view settings;
};

constexpr FormatRow formats[] = {{"bfloat16", "storage=bfloat16"},
                                 {"binary16", "storage=binary16"},
                                 {"binary32", "dispatch=fp32"}};

struct DefectRow {
  std::string_view name;
  std::string_view settings;
  bool in_on;               ///< of the arm with the cache; else of the other one
  bool in_identity = true;  ///< batch-invariant kernels have it, too: control 2 sees it
};

constexpr DefectRow defects[] = {
    {"RoPE one position on", "plant=position+1", true},
    {"a key that is not written", "plant=stale-cache-entry", true},
    {"another K/V head", "plant=swapped-heads", true},
    {"a scale twice as large", "plant=scale-doubled", false},
    {"keys that are not masked", "plant=mask-missing", false},
    // A dispatch brings its own RoPE with it.
    {"RoPE left out", "rope=none", false, false},
};

class PlantedControls : public testing::TestWithParam<FormatRow> {
 protected:
  PlantedControls() {
    const std::string folder = KVSIM_SOURCE_DIR "/data/kv-tiny";
    engine_ = make_sim_engine(load_checkpoint(folder).value(), "kv-tiny", {}).value();
    setup_.engine = engine_.get();
    const Tokenizer tokenizer = Tokenizer::load(folder).value();
    for (const std::string_view text : questions) {
      const std::int64_t number = std::ssize(setup_.prompts);
      setup_.prompts.push_back({{number, tokenizer.encode(std::string(text)).value()}, ""});
    }
    setup_.version = "test";
  }

  /// What a control says of two arms of the format, and the figure that decided it.
  [[nodiscard]] std::string verdict(int number, std::string_view on, std::string_view off) {
    const auto arm = [&](std::string_view cache, std::string_view defect) {
      std::string text = std::string(cache) + ":" + std::string(GetParam().settings);
      if (!defect.empty()) text += "," + std::string(defect);
      return test::arm_of(text);
    };
    setup_.on = arm("live", on);
    setup_.off = arm("off", off);
    const StudySetup small = controls_setup(setup_);
    const ControlRow& row = control_rows()[static_cast<std::size_t>(number - 1)];
    ControlRecords records;
    for (std::int64_t prompt = 0; prompt < std::ssize(small.prompts); ++prompt) {
      const Result<Json> values = row.measure(small, prompt);
      EXPECT_TRUE(values) << values.error().message;
      if (values) records[number].push_back(*values);
    }
    const ControlVerdict judged = row.judge(records);
    std::string text(to_string(judged.outcome()));
    if (const ControlCheck* const check = judged.decisive()) {
      text +=
          fmt::format(": {} {} of {} to {}", check->what, check->measured, check->low, check->high);
    }
    return text;
  }

  std::unique_ptr<Engine> engine_;
  StudySetup setup_;
};

TEST_P(PlantedControls, AreGreenWithoutADefect) {
  for (const int number : {2, 3, 15}) EXPECT_THAT(verdict(number, "", ""), StartsWith("green"));
  // Not every one applies in every format.
  for (const int number : {11, 16}) {
    EXPECT_THAT(verdict(number, "", ""), Not(StartsWith("failed"))) << number;
  }
}

TEST_P(PlantedControls, AreRedWithEachDefect) {
  for (const DefectRow& defect : defects) {
    SCOPED_TRACE(std::string(defect.name));
    const std::string_view on = defect.in_on ? defect.settings : "";
    const std::string_view off = defect.in_on ? "" : defect.settings;
    EXPECT_THAT(verdict(3, on, off), StartsWith("failed"));
    if (!defect.in_identity) continue;
    EXPECT_THAT(verdict(2, on, off), StartsWith("failed"));
  }
}

TEST_P(PlantedControls, FlipsAtLargeMarginsAreADefect) {
  EXPECT_THAT(verdict(11, "", "plant=scale-doubled"), StartsWith("failed"));
}

INSTANTIATE_TEST_SUITE_P(Formats, PlantedControls, testing::ValuesIn(formats),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(UnturnedRope, HasAPredictionOfItsOwnKernels) {
  // A planted defect and RoPE's factors leave the prediction as it is.
  const auto engine =
      make_sim_engine(load_checkpoint(KVSIM_SOURCE_DIR "/data/kv-tiny").value(), "kv-tiny", {})
          .value();
  const auto drift = [&](std::string_view arm) {
    return predicted_drift_of(prepare(*engine, test::arm_of(arm)).value()).value();
  };
  EXPECT_EQ(drift("live:plant=scale-doubled"), drift("live"));
  EXPECT_EQ(drift("off:rope=none"), drift("live"));
  EXPECT_LT(drift("live:storage=binary16").back(), drift("live").back() / 4);
}

}  // namespace
}  // namespace kvsim::experiments
