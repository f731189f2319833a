// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "experiments/studies/falsify_draw.h"
#include "experiments/studies/falsify_grid.h"
#include "experiments/studies/falsify_sweep.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

// One key: its probability is 1 and the output its value.
TEST(FalsifyDraw, OneKeyIsCopied) {
  const AttentionDraw draw = attention_draw(3, 1, 4);
  const std::vector<double> p = plain_softmax(plain_scores(draw));
  EXPECT_EQ(p, std::vector<double>{1});
  EXPECT_EQ(plain_values(draw, p), draw.v);
}

// q·k ÷ √4 = 0 and log 3: probabilities ¼ and ¾ of the values (4, 0, 8, 2) and (8, 4, 0, 2).
TEST(FalsifyDraw, AttentionByHand) {
  AttentionDraw draw;
  draw.keys = 2;
  draw.head_dim = 4;
  draw.q = {1, 2, 0, 0};
  draw.k = {2, -1, 5, 5, std::log(9.0), 0, 7, -7};
  draw.v = {4, 0, 8, 2, 8, 4, 0, 2};
  const std::vector<double> p = plain_softmax(plain_scores(draw));
  EXPECT_NEAR(p[0], 0.25, 1e-15);
  const std::vector<double> out = plain_values(draw, p);
  const std::vector<double> expected{7, 3, 2, 2};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-14);
}

TEST(FalsifyDraw, AShorterDrawIsItsBeginning) {
  const AttentionDraw whole = attention_draw(1, 6, 4);
  const AttentionDraw part = whole.first(3);
  EXPECT_EQ(part.q, whole.q);
  EXPECT_EQ(part.v, attention_draw(1, 3, 4).v);
  EXPECT_EQ(part.k_transposed[1], whole.k[4]);  // channel 0 of key 1
}

/// Means over four draws by column and length.
const std::map<std::string, std::vector<double>>& sweep_means() {
  static const std::map<std::string, std::vector<double>> means = [] {
    std::map<std::string, std::vector<double>> sums;
    for (std::uint64_t draw = 0; draw < 4; ++draw) {
      const Json errors = sweep_errors(draw).value();
      for (const auto& [key, list] : errors.items()) {
        sums[key].resize(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) sums[key][i] += list.at(i).get<double>() / 4;
      }
    }
    return sums;
  }();
  return means;
}

struct Reference {
  std::string column;
  double at_16;
  double at_128;
  double at_512;
  double at_2048;
  double tolerance;
};

// Means of 60 draws of a program with the compiler's half type and a binary64 reference (the table
// of docs/experiments/falsify.md); the tolerances are three standard errors of four draws.
TEST(FalsifySweep, ErrorsAreThoseOfAnIndependentProgram) {
  const std::vector<Reference> references{
      {"output", 2.0e-4, 2.0e-4, 2.0e-4, 2.1e-4, 0.12},
      {"p", 1.9e-4, 2.1e-4, 2.1e-4, 2.2e-4, 0.40},
      {"p_output", 2.8e-4, 2.9e-4, 3.0e-4, 3.0e-4, 0.25},
      {"scores_p_output", 3.9e-4, 4.8e-4, 5.5e-4, 5.3e-4, 0.45},
      {"half", 6.9e-4, 1.7e-3, 3.3e-3, 6.7e-3, 0.40},
      {"half_reverse", 8.7e-4, 2.3e-3, 4.7e-3, 9.2e-3, 0.40},
      {"sum_stored", 1.8e-4, 1.8e-4, 1.8e-4, 1.8e-4, 0.15},
      {"sum_half", 4.0e-4, 9.9e-4, 1.9e-3, 3.8e-3, 0.20},
  };
  for (const Reference& reference : references) {
    const std::vector<double>& means = sweep_means().at(reference.column);
    EXPECT_NEAR(means[0] / reference.at_16, 1, reference.tolerance) << reference.column;
    EXPECT_NEAR(means[3] / reference.at_128, 1, reference.tolerance) << reference.column;
    EXPECT_NEAR(means[5] / reference.at_512, 1, reference.tolerance) << reference.column;
    EXPECT_NEAR(means[7] / reference.at_2048, 1, reference.tolerance) << reference.column;
  }
}

// With sums in binary32, in order or on a matrix unit, what is left is storage, at every length.
TEST(FalsifySweep, SumsInBinary32LeaveStorageAlone) {
  for (const char* column : {"single", "unit"}) {
    for (const double error : sweep_means().at(column)) {
      EXPECT_NEAR(error / 2.9e-4, 1, 0.25) << column;
    }
  }
}

TEST(FalsifySweep, SummaryFitsTheExponents) {
  Json draw;
  for (const auto columns : {attention_columns(), sum_columns_of_sweep()}) {
    for (const SweepColumn& column : columns) {
      for (const std::int64_t length : sweep_lengths()) {
        const auto n = static_cast<double>(length);
        draw[std::string(column.key)].push_back(column.key == "half" ? 1e-4 * std::sqrt(n) : 2e-4);
      }
    }
  }
  StudySummary summary;
  ASSERT_TRUE(summarize_sweep(std::vector<Json>{draw, draw}, summary));
  const Json& attention = summary.result.at("lengths").at("attention");
  EXPECT_NEAR(attention.at("half").at("exponent").at("value").get<double>(), 0.5, 1e-8);
  EXPECT_NEAR(attention.at("half").at("exponent").at("low").get<double>(), 0.5, 1e-8);
  EXPECT_NEAR(attention.at("output").at("exponent").at("value").get<double>(), 0, 1e-8);
  EXPECT_EQ(attention.at("output").at("2048").get<double>(), 2e-4);
}

TEST(FalsifyGrid, EveryCellOnce) {
  EXPECT_EQ(grid_cells().size(), 3 * 4 * 3 * 3);
  EXPECT_EQ(to_text(GridCell{softfloat::binary32, softfloat::tf32, softfloat::binary32,
                             softfloat::binary16}),
            "binary32/tf32/binary32/binary16");
}

// Cells that can be told without computing: a format that is read through a coarser one, and TF32
// operands, which have the significand of binary16 (values here stay within its range).
TEST(FalsifyGrid, CellsThatMustAgree) {
  const Json errors = grid_errors(0).value();
  EXPECT_EQ(errors.size(), grid_cells().size());
  const auto of = [&](const char* cell) { return errors.at(cell).at(1).get<double>(); };
  EXPECT_NEAR(of("binary32/tf32/binary64/binary32") / of("binary32/binary16/binary64/binary32"), 1,
              1e-2);
  // 2^−24 against 2^−11 and 2^−8: the error follows u.
  const double single = of("binary32/binary32/binary64/binary32");
  const double half = of("binary16/binary16/binary64/binary16");
  const double brain = of("bfloat16/bfloat16/binary64/bfloat16");
  EXPECT_NEAR(half / single / 8192, 1, 0.5);
  EXPECT_NEAR(brain / half / 8, 1, 0.5);
  // KL of logits that are off by a relative error e: about e² times what two cells have in common.
  const auto kl = [&](const char* cell) { return errors.at(cell).at(2).get<double>(); };
  const double first = kl("bfloat16/bfloat16/binary64/bfloat16") / (brain * brain);
  const double second = kl("binary32/binary32/binary64/binary32") / (single * single);
  EXPECT_NEAR(std::log2(first / second), 0, 2);
}

TEST(FalsifyGrid, SummaryFitsTheLaws) {
  Json draw;
  for (const GridCell& cell : grid_cells()) {
    double squares = 0;
    for (const softfloat::Format& format : {cell.storage, cell.operand, cell.output}) {
      squares += std::ldexp(1.0, -2 * format.precision);
    }
    draw[to_text(cell)] = {std::sqrt(squares), std::sqrt(squares), 3 * squares};
  }
  StudySummary summary;
  ASSERT_TRUE(summarize_grid(std::vector<Json>{draw}, summary));
  const Json& grid = summary.result.at("grid");
  EXPECT_NEAR(grid.at("error_over_u").at("value").get<double>(), 1, 1e-8);
  EXPECT_NEAR(grid.at("kl_over_u").at("value").get<double>(), 2, 1e-8);
  EXPECT_NEAR(grid.at("kl_over_error").at("value").get<double>(), 2, 1e-8);
}

}  // namespace
}  // namespace kvsim::experiments
