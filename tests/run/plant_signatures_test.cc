// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/model_places.h"
#include "model/checkpoint.h"
#include "model/model_store.h"
#include "model/tokenizer.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "tests/run/decoder_fixture.h"
#include "tests/run/plant_signature.h"

/// Every plant that a model can show, on one text, beside what rounding does to it. The tables are
/// those of docs/plants.md; with KVSIM_UPDATE_GOLDEN=1 the tests write them.
namespace kvsim {
namespace {

using namespace test;

constexpr PlantArm bfloat16_arm{"h100-fa3", softfloat::bfloat16};
constexpr PlantArm binary32_arm{"fp32", softfloat::binary32};
// How many times as large as rounding: every plant in float32, and in bfloat16 all but a rotary
// table in binary16 at small positions.
constexpr double least_in_binary32 = 100;
constexpr double least_in_bfloat16 = 10;
constexpr std::int64_t generated = 8;
constexpr std::int64_t far_position = 3000;

struct Row {
  PlantCase planted;
  std::string name;
  PlantSignature expected;  // first, token_wise and reach
};

TraceDifference in_prompt(const char* operation, std::int64_t row, std::int64_t layer = 0) {
  return {true, layer, operation, row};
}

/// What follows from the definitions of the plants for a prompt of n tokens.
std::vector<Row> rows_of(const DecoderShape& shape, std::int64_t n) {
  const TraceDifference behind_rope{false, 0, "query-rope", n};
  const TraceDifference behind_attention{false, 0, "attention", n};
  std::vector<Row> rows{
      {{Plant::position_plus_one}, "", {behind_rope, 1, n - 1}},
      {{Plant::mask_missing}, "", {in_prompt("attention", 0), {}, 0}},
      {{Plant::rope_table_16_bit}, "", {in_prompt("query-rope", 1), 1, n - 1}},
      {{Plant::rope_table_16_bit, 0, far_position},
       fmt::format("…, from position {}", far_position),
       {in_prompt("query-rope", 0), 0, n - 1}},
      {{Plant::stale_cache_entry}, "", {behind_attention, 2, n - 1}},
      {{Plant::pad_positions, 3}, "pad-positions, 3 rows of padding", {behind_rope, 1, n - 1}},
      {{Plant::causal_leak}, "", {in_prompt("attention", 0), {}, n - 2}},
      {{Plant::scale_doubled}, "", {in_prompt("attention", 1), 1, n - 1}},
      {{Plant::wrong_epsilon}, "", {in_prompt("attention-norm", 0), 0, n - 1}}};
  if (shape.kv_heads > 1) {
    rows.push_back({{Plant::swapped_heads}, "", {behind_attention, 1, n - 1}});
  }
  if (shape.window > 0) {
    rows.push_back({{Plant::window_off_by_one},
                    "",
                    {in_prompt("attention", shape.window), shape.window, n - 1}});
  }
  if (shape.attention_soft_cap > 0) {
    rows.push_back({{Plant::soft_cap_missing}, "", {in_prompt("attention", 1), 0, n - 1}});
  }
  for (Row& row : rows) {
    if (row.name.empty()) row.name = to_string(row.planted.plant);
  }
  return rows;
}

std::string text_of(const std::optional<std::int64_t>& row) {
  return row ? std::to_string(*row) : "never";
}

std::string size_text(const TraceDistance& size, const TraceDistance& rounding) {
  const std::string factor =
      rounding.logits > 0 ? fmt::format("{:.2g}", size.logits / rounding.logits) : "–";
  return fmt::format("{:.2g} | {} | {:.2g}", size.logits, factor, size.kl);
}

/// The text between the fences behind the mark of a model; replaced where tables are made anew.
void expect_documented(std::string_view model, const std::string& table) {
  const std::string path = KVSIM_SOURCE_DIR "/docs/plants.md";
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  std::string page = all.str();
  const std::string mark = fmt::format("<!-- plants: {} -->\n\n", model);
  const std::size_t begin = page.find(mark);
  ASSERT_NE(begin, std::string::npos) << path << ": " << mark;
  const std::size_t first = begin + mark.size();
  const std::size_t end = std::min(page.find("\n\n", first), page.size() - 1) + 1;
  if (std::getenv("KVSIM_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << page.replace(first, end - first, table);
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), table) << "KVSIM_UPDATE_GOLDEN=1 writes it";
}

// Without padding there is nothing to count.
void expect_no_pad_positions(const PlantSubject& subject) {
  const std::vector<std::int64_t> live = live_lengths(subject);
  EXPECT_FALSE(first_difference(trace(subject, bfloat16_arm, {}, live),
                                trace(subject, bfloat16_arm, {Plant::pad_positions}, live)));
}

void expect_signatures(std::string_view model, const PlantSubject& subject) {
  const std::vector<std::int64_t> live = live_lengths(subject);
  const std::vector<std::int64_t> once{std::ssize(subject.tokens)};
  std::string table =
      "| plant | bf16: max Δlogit | ÷ rounding | max KL | fp32: max Δlogit | ÷ rounding | max KL | "
      "first differs | token by token, from row | attention reaches back to row |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  CleanTraces clean(subject);
  std::vector<TraceDistance> rounding;
  for (const PlantArm& arm : {bfloat16_arm, binary32_arm}) {
    rounding.push_back(distance_of(clean.of(arm, {}, live), clean.of(arm, {}, once)));
  }
  EXPECT_GT(rounding[1].logits, 0);
  table += fmt::format("| none: all rows at once | {} | {} | | | |\n",
                       size_text(rounding[0], rounding[0]), size_text(rounding[1], rounding[1]));
  std::set<std::tuple<bool, std::int64_t, std::string, std::int64_t, std::int64_t, std::int64_t,
                      bool, bool, std::int64_t>>
      seen;
  for (const Row& row : rows_of(subject.shape, subject.prompt)) {
    SCOPED_TRACE(row.name);
    std::vector<TraceDistance> sizes;
    Trace with;
    for (const PlantArm& arm : {bfloat16_arm, binary32_arm}) {
      with = trace(subject, arm, row.planted, live);
      sizes.push_back(distance_of(clean.of(arm, row.planted, live), with));
    }
    EXPECT_GT(sizes[1].logits, least_in_binary32 * rounding[1].logits);
    EXPECT_GT(sizes[1].kl, least_in_binary32 * rounding[1].kl);
    if (row.planted.plant != Plant::rope_table_16_bit || row.planted.first_position > 0) {
      EXPECT_GT(sizes[0].logits, least_in_bfloat16 * rounding[0].logits);
      EXPECT_GT(sizes[0].kl, least_in_bfloat16 * rounding[0].kl);
    }
    const std::int64_t token_wise = std::max<std::int64_t>(4, subject.shape.window + 1);
    const PlantSignature found =
        signature_of(subject, binary32_arm, row.planted, token_wise, with, clean);
    EXPECT_EQ(found.first, row.expected.first);
    EXPECT_EQ(found.token_wise, row.expected.token_wise);
    EXPECT_EQ(found.reach, row.expected.reach);
    // Beyond the cap of logits stands only what has lost it.
    if (const double cap = subject.shape.final_soft_cap; cap > 0) {
      EXPECT_EQ(found.largest_logit > cap, row.planted.plant == Plant::soft_cap_missing);
    }
    EXPECT_TRUE(
        seen.insert(std::tuple_cat(found.structure(subject.shape.final_soft_cap),
                                   std::tuple(row.planted.padding > 0, row.planted.first_position)))
            .second)
        << "another plant has this signature";
    ASSERT_TRUE(found.first);
    table += fmt::format("| {} | {} | {} | {}, layer {}, {}, row {} | {} | {} |\n", row.name,
                         size_text(sizes[0], rounding[0]), size_text(sizes[1], rounding[1]),
                         found.first->in_prompt ? "prompt" : "behind it", found.first->layer,
                         found.first->operation, found.first->row, text_of(found.token_wise),
                         found.reach);
  }
  expect_documented(model, table);
  expect_no_pad_positions(subject);
}

PlantSubject subject_of(const Checkpoint& checkpoint, std::vector<std::int32_t> tokens) {
  const std::int64_t prompt = std::ssize(tokens) - generated;
  return {decoder_shape(checkpoint.config()).value(), decoder_weights(checkpoint).value(),
          std::move(tokens), prompt};
}

#ifdef KVSIM_PLANTS_SMOLLM2
TEST(PlantSignatures, OfSmolLm2) {
  const auto folder = find_model("smollm2-135m", model_places());
  ASSERT_TRUE(folder) << folder.error().message;
  const Checkpoint checkpoint = load_checkpoint(*folder).value();
  // A question of the model's golden.
  const auto golden =
      read_json(KVSIM_SOURCE_DIR "/tests/golden/models/smollm2-135m.json").at("prompts").at(0);
  expect_signatures("smollm2-135m",
                    subject_of(checkpoint, golden.at("ids").get<std::vector<std::int32_t>>()));
}
#else
TEST(PlantSignatures, OfKvTiny) {
  const std::string folder = find_model(default_model, model_places()).value();
  const Checkpoint checkpoint = load_checkpoint(folder).value();
  const Tokenizer tokenizer = Tokenizer::load(folder).value();
  const std::vector<TokenId> ids =
      tokenizer
          .encode(
              "Jonas has 4 bags with 5 cards in each. Jonas buys 5 packs of 4 cards. How many "
              "cards does Jonas have now?")
          .value();
  ASSERT_GT(ids.size(), 16U);
  const PlantSubject subject = subject_of(checkpoint, {ids.begin(), ids.end()});
  expect_signatures(default_model, subject);
}

// A window, and soft caps.
TEST(PlantSignatures, OfTheRandomGemma2) {
  const Fixture fixture("gemma2");
  ASSERT_GT(fixture.shape.window, 0);
  std::vector<std::int32_t> tokens = fixture.ids;
  ASSERT_GT(std::ssize(tokens), fixture.shape.window + generated + 2);
  tokens.resize(static_cast<std::size_t>(fixture.shape.window + generated + 8));
  expect_signatures("gemma2", subject_of(fixture.checkpoint, tokens));
}
#endif

}  // namespace
}  // namespace kvsim
