// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "experiments/studies/gqa_sweep.h"
#include "experiments/study.h"
#include "tests/run/engine_runs.h"

namespace kvsim::experiments {
namespace {

TEST(GqaSweep, NamesItsUnits) {
  EXPECT_EQ(sweep_part(gqa_sweeps[0], 4), "R 4");
  EXPECT_EQ(sweep_place("R 4")->value, 4);
  EXPECT_EQ(sweep_place("head_dim 256")->sweep->part, "head_dim");
  EXPECT_FALSE(sweep_place("R 3"));
  EXPECT_FALSE(sweep_place("model"));
}

class GqaOfGolden : public testing::Test {
 protected:
  GqaOfGolden() {
    setup_.engine = engine_.get();
    setup_.on = test::arm_of("live");
    setup_.off = test::arm_of("off");
    setup_.new_tokens = 3;
    setup_.prompts = {{{0, test::prompt}, ""}};
  }
  [[nodiscard]] Json model() const {
    return row_->make()->compute(setup_, {"model", 0, 0, 0}).value().at("kernels");
  }

  std::unique_ptr<Engine> engine_ = test::engine_of("llama-llama3");
  StudySetup setup_;
  const StudyRow* row_ = study_named("gqa").value();
};

// Kernels whose sums do not depend on the shape: not one bit differs, with or without the cache.
TEST_F(GqaOfGolden, OneReductionGivesEqualBits) {
  const Json kernels = model();
  const Json& one = kernels.at("one reduction");
  EXPECT_GT(one.at("factor").get<int>(), 1);
  for (const char* pair : {"shared", "repeated", "between"}) {
    ASSERT_EQ(one.at(pair).at("differs").size(), 3U);
    for (const Json& differs : one.at(pair).at("differs")) EXPECT_FALSE(differs.get<bool>());
    for (const Json& kl : one.at(pair).at("kl")) EXPECT_EQ(kl, 0);
  }
}

TEST_F(GqaOfGolden, EveryPieceOfWorkHasAPlace) {
  const auto units = row_->make()->units(setup_).value();
  EXPECT_EQ(std::ssize(units), 1 + 2 * 4);  // one seed for each prompt
  EXPECT_TRUE(std::ranges::all_of(units, [](const StudyUnit& unit) {
    return unit.part == "model" || sweep_place(unit.part).has_value();
  }));
}

StudyRecords::Unit sweep_unit(const char* part, double first, double last) {
  return {{.part = part, .seed = 1},
          {{"dispatch", "h100"}, {"l2", {1, 1}}, {"relative", {first, last}}}};
}

// The first layer's drift rises with R, seed by seed.
TEST(GqaTables, TellTheTrend) {
  const StudyRecords records{{},
                             {sweep_unit("R 1", 1, 2), sweep_unit("R 1", 2, 4),
                              sweep_unit("R 2", 3, 6), sweep_unit("R 4", 4, 8)}};
  const StudySummary summary = summarize(*study_named("gqa").value(), records).value();
  const Json& sweep = summary.result.at("R");
  EXPECT_EQ(sweep.at("values").at(0).at("first"), 1.5);
  EXPECT_EQ(sweep.at("values").at(0).at("growth"), 2);
  // Ranks (1.5, 1.5, 3, 4) against (1, 2, 3, 4): 4.5 ÷ √(4.5 · 5).
  EXPECT_NEAR(sweep.at("trend").at("spearman").at("value").get<double>(), 0.9486832980505138, 1e-9);
  EXPECT_FALSE(summarize(*study_named("gqa").value(), {}));
}

}  // namespace
}  // namespace kvsim::experiments
