// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/plants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "tests/sim/decoder/tiny_model.h"

namespace kvsim {
namespace {

using test::arm;
using test::TinyModel;

constexpr std::int64_t length = 24;
constexpr std::int64_t prompt = 12;

/// The largest change of a logit, by row, that a plant makes to prefill and decode.
std::vector<double> changes(const TinyModel& model, Plant plant, std::string_view dispatch,
                            std::int64_t padding, std::int64_t first_position) {
  std::vector<std::vector<double>> logits;
  for (const Plant each : {Plant::none, plant}) {
    DecoderArmOptions options = arm(dispatch);
    options.plant = each;
    IncrementalDecoder decoder = test::decoder_of(model, options);
    KvCache cache = decoder.new_cache();
    const std::vector<std::int32_t> tokens = test::some_tokens(length);
    std::vector<double> all;
    for (std::int64_t row = 0; row < length;) {
      const std::int64_t count = row == 0 ? prompt : 1;
      std::vector<std::int64_t> positions;
      for (std::int64_t i = row; i < row + count; ++i) {
        positions.push_back(std::max<std::int64_t>(0, i - padding) + first_position);
      }
      // Strong enough to be seen where the mask hides nothing: every second position is skipped.
      for (std::int64_t& position : positions) position *= padding > 0 ? 2 : 1;
      DecoderPass pass;
      pass.tokens =
          std::span(tokens).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(count));
      pass.first_row = row;
      pass.positions = positions;
      pass.padding = padding;
      pass.all_logits = true;
      const auto result = decoder.pass(cache, pass);
      EXPECT_TRUE(result) << result.error().message;
      all.insert(all.end(), result->logits.begin(), result->logits.end());
      row += count;
    }
    logits.push_back(std::move(all));
  }
  std::vector<double> result;
  for (std::int64_t row = 0; row < length; ++row) {
    double largest = 0;
    for (std::int64_t i = row * 80; i < (row + 1) * 80; ++i) {
      const auto at = static_cast<std::size_t>(i);
      largest = std::max(largest, std::fabs(logits[0][at] - logits[1][at]));
    }
    result.push_back(largest);
  }
  return result;
}

struct Signature {
  Plant plant;
  std::int64_t first_row;  ///< that changes
  double least;            ///< largest change of all, at least
  std::int64_t padding = 0;
  std::int64_t first_position = 0;
};

// Beyond 2048, binary16 has every second position only. Logits are capped at 10; the rounding of
// bfloat16 moves them by some hundredths.
const Signature signatures[] = {
    {Plant::position_plus_one, prompt, 0.5},   {Plant::mask_missing, 0, 1},
    {Plant::window_off_by_one, 5, 0.5},  // the window has 5 keys
    {Plant::rope_table_16_bit, 0, 1, 0, 3001}, {Plant::stale_cache_entry, prompt, 0.5},
    {Plant::pad_positions, prompt, 0.5, 3},    {Plant::causal_leak, 0, 1},
    {Plant::swapped_heads, prompt, 1},         {Plant::scale_doubled, 1, 1},
    {Plant::soft_cap_missing, 0, 1},           {Plant::wrong_epsilon, 0, 0.05},
};

TEST(Plants, EachHasItsOwnLargeSignature) {
  const TinyModel model(test::full_shape());
  for (const std::string_view dispatch : {"exact", "binary64", "exact-sums", "h100-fa3"}) {
    for (const Signature& expected : signatures) {
      SCOPED_TRACE(std::string(dispatch) + " " + std::string(to_string(expected.plant)));
      const std::vector<double> by_row =
          changes(model, expected.plant, dispatch, expected.padding, expected.first_position);
      const auto first = static_cast<std::size_t>(expected.first_row);
      for (std::size_t row = 0; row < first; ++row) {
        if (static_cast<std::int64_t>(row) < expected.padding) continue;
        EXPECT_EQ(by_row[row], 0) << row;
      }
      EXPECT_GT(by_row[first] + (first == 0 ? by_row[1] : 0), 0);
      EXPECT_GT(*std::ranges::max_element(by_row), expected.least);
    }
  }
}

TEST(Plants, HaveNames) {
  std::set<std::string_view> names;
  EXPECT_EQ(plants().size(), std::size(signatures));
  for (const PlantRow& row : plants()) {
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(find_plant(row.name).value(), row.plant);
    EXPECT_EQ(to_string(row.plant), row.name);
  }
  EXPECT_EQ(to_string(Plant::none), "none");
  EXPECT_NE(find_plant("casual-leak").error().message.find("did you mean causal-leak?"),
            std::string::npos);
}

}  // namespace
}  // namespace kvsim
