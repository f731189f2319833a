// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "run/record_reader.h"
#include "softfloat/formats.h"
#include "tests/model/test_file.h"
#include "tests/run/records.h"

namespace kvsim {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string without_newline(std::string line) {
  line.pop_back();
  return line;
}

std::string message(std::string_view line) {
  const Result<RecordLine> record = parse_record_line(line);
  return record ? "accepted" : record.error().message;
}

/// The step line with one piece replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string line = without_newline(to_line(test::step_record("on", 0, 9)));
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return line.replace(at, from.size(), to);
}

TEST(RecordLine, IsWrittenAsTheSchemaSays) {
  EXPECT_EQ(to_line(test::step_record("on", 3, 9)),
            R"({"schema":"kvsim.record/2","kind":"step","prompt":0,"arm":"on","step":3,"token":9,)"
            R"("logprob":-0.25,)"
            R"("top":[{"id":9,"logit":20.5,"logprob":-0.25},{"id":10,"logit":20.25,"logprob":-2}],)"
            R"("margin":{"logits":0.25,"ulps":2},"digests":{"state":[)"
            R"({"layer":0,"operation":"k","head":0,"position":3,"digest":"aa"},)"
            R"({"layer":0,"operation":"v","head":0,"position":3,"digest":"bb"},)"
            R"({"layer":1,"operation":"k","head":0,"position":3,"digest":"cc"}],)"
            R"("layer":["l0","l1"],"route":[],"token":"t"},)"
            R"("cost":{"multiply_adds":1000}})"
            "\n");
  EXPECT_EQ(to_line(test::prompt_record()),
            R"({"schema":"kvsim.record/2","kind":"prompt","prompt":0,"prompt_ids":[1,42,7],"run":)"
            R"({"version":"0.1.0","engine":"sim","model":"kv-tiny","model_sha256":"00ff",)"
            R"x("storage":"bfloat16","sampling":"greedy (ties go to the lower index)","seed":1,)x"
            R"("max_new_tokens":64,"teacher_forced":false,"arms":[{"label":"on","arm":"live",)"
            R"("dispatch":"h100"},{"label":"off","arm":"off","dispatch":"h100"}]}})"
            "\n");
  EXPECT_EQ(to_line(test::comparison_record(3)),
            R"({"schema":"kvsim.record/2","kind":"comparison","prompt":0,"first":"on",)"
            R"("second":"off","step":3,"same_context":true,"kl":0.125,"js":0.0625,)"
            R"("largest_logit_difference":0.5,"differing_logits":12,"top_two_error":-0.25})"
            "\n");
}

TEST(RecordLine, ReadsBackWhatIsWritten) {
  PromptRecord prompt = test::prompt_record(5);
  prompt.run.model = "a \"quoted\"\n\tname \xc3\xa4";
  prompt.run.seed = std::numeric_limits<std::uint64_t>::max();
  const Result<RecordLine> read_prompt = parse_record_line(without_newline(to_line(prompt)));
  ASSERT_TRUE(read_prompt) << read_prompt.error().message;
  EXPECT_EQ(std::get<PromptRecord>(*read_prompt), prompt);

  StepRecord step = test::step_record("off", 4, 1LL << 40);
  step.top = {{0, 0.1, -1e-300}, {1, -0.0, -745.2}, {2, 1.0 / 3, -3e7}, {3, 1e300, -0.5}};
  step.margin.reset();
  const Result<RecordLine> read_step = parse_record_line(without_newline(to_line(step)));
  ASSERT_TRUE(read_step) << read_step.error().message;
  EXPECT_EQ(std::get<StepRecord>(*read_step), step);
  EXPECT_TRUE(std::signbit(std::get<StepRecord>(*read_step).top[1].logit));

  ComparisonRecord comparison = test::comparison_record(4, 5);
  for (const bool is_finite : {true, false}) {
    if (!is_finite) comparison.kl.reset();
    comparison.same_context = is_finite;
    const Result<RecordLine> read = parse_record_line(without_newline(to_line(comparison)));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(std::get<ComparisonRecord>(*read), comparison);
  }
}

// The golden lines are written by hand; schema_test.py shows that they fit the schema.
TEST(RecordLine, OfTheGoldenFileIsWrittenAsItWasRead) {
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/run/golden/records.jsonl", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<Records> records = parse_records(text, "golden");
  ASSERT_TRUE(records) << records.error().message;
  std::string written = to_line(records->prompts.at(0));
  for (const StepRecord& step : records->steps) written += to_line(step);
  for (const ComparisonRecord& comparison : records->comparisons) written += to_line(comparison);
  EXPECT_EQ(written, text);
}

TEST(RecordLine, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(message(changed("\"token\":9", "\"token\":-9")),
              HasSubstr("token: -9; accepted: a whole number from 0 to 9223372036854775807"));
  EXPECT_THAT(message(changed("\"token\":9", "\"token\":9.5")), StartsWith("token: 9.5; accepted"));
  EXPECT_THAT(message(changed("\"token\":9", "\"token\":\"9\"")), StartsWith("token: \"9\"; acc"));
  EXPECT_THAT(message(changed("\"id\":10", "\"id\":null")),
              StartsWith("top[1].id: null; accepted"));
  EXPECT_THAT(message(changed("\"logit\":20.5", "\"logit\":\"20.5\"")),
              StartsWith("top[0].logit: \"20.5\"; accepted: a number"));
  EXPECT_THAT(message(changed("\"logit\":20.5", "\"logit\":1e999")), HasSubstr("accepted: "));
  EXPECT_THAT(message(changed("\"digest\":\"cc\"", "\"digest\":1")),
              StartsWith("digests.state[2].digest: 1; accepted: a text"));
  EXPECT_THAT(message(changed("\"cost\":{", "\"cost\":{\"seconds\":3,")),
              StartsWith("cost: field \"seconds\" is not known; accepted: multiply_adds"));
  EXPECT_THAT(message(changed("\"multiply_adds\":1000", "")),
              StartsWith("cost: field \"multiply_adds\" is missing; accepted: "));
  EXPECT_THAT(message(changed("\"margin\":{\"logits\":0.25,\"ulps\":2}", "\"margin\":3")),
              StartsWith("margin: 3; accepted: an object of logits, ulps"));
  EXPECT_THAT(message(changed("kvsim.record/2", "kvsim.record/1")),
              StartsWith("schema: \"kvsim.record/1\"; accepted: \"kvsim.record/2\""));
  EXPECT_THAT(message(changed("\"kind\":\"step\"", "\"kind\":\"stop\"")),
              StartsWith("kind: \"stop\"; accepted: \"prompt\", \"step\", \"comparison\""));
  EXPECT_THAT(message(changed("\"step\":0", "\"step\":0,\"step\":0")), HasSubstr("stands twice"));
  for (const char* line : {"", "[]", "3", "{}", "{", "{\"schema\":}", "\xff"}) {
    EXPECT_THAT(message(line), HasSubstr("accepted: ")) << line;
  }
  EXPECT_THAT(message(changed("\"arm\":\"on\"", "\"arm\":\"" + std::string(5000, 'x') + "\"")),
              HasSubstr("a text of 5000 bytes; accepted: at most 4096"));
}

TEST(ParseRecords, ChecksHowLinesBelongTogether) {
  const std::string head = to_line(test::prompt_record());
  const std::string step0 = to_line(test::step_record("on", 0, 9));
  const std::string step1 = to_line(test::step_record("on", 1, 9));
  const auto refused = [](const std::string& text) {
    const Result<Records> records = parse_records(text, "a.jsonl");
    if (records) return std::string("accepted");
    test::expect_one_line(records.error());
    return records.error().message;
  };
  EXPECT_EQ(parse_records(head + step0 + step1, "")->steps.size(), 2U);
  EXPECT_THAT(refused(head + head),
              StartsWith("a.jsonl: line 2: prompt: 0 stands twice; accepted"));
  EXPECT_THAT(refused(step0), StartsWith("a.jsonl: line 1: prompt: 0 has no head line before"));
  EXPECT_THAT(refused(head + step1), StartsWith("a.jsonl: line 2: step: 1; accepted: 0, the next"));
  EXPECT_THAT(refused(head + step0 + step0), StartsWith("a.jsonl: line 3: step: 0; accepted: 1"));
  EXPECT_THAT(refused(head + to_line(test::step_record("x", 0, 9))),
              StartsWith("a.jsonl: line 2: arm: \"x\"; accepted: the labels of the prompt's head"));
  const std::string pair0 = to_line(test::comparison_record(0));
  EXPECT_EQ(
      parse_records(head + pair0 + to_line(test::comparison_record(1)), "")->comparisons.size(),
      2U);
  EXPECT_THAT(refused(pair0), StartsWith("a.jsonl: line 1: prompt: 0 has no head line before"));
  EXPECT_THAT(refused(head + pair0 + pair0),
              StartsWith("a.jsonl: line 3: step: 0; accepted: 1, the next one of these arms"));
  ComparisonRecord unknown = test::comparison_record(0);
  unknown.second = "x";
  EXPECT_THAT(refused(head + to_line(unknown)),
              StartsWith("a.jsonl: line 2: second: \"x\"; accepted: the labels"));
  EXPECT_THAT(refused(head + "{}\n"), StartsWith("a.jsonl: line 2: schema: missing; accepted"));
  EXPECT_THAT(refused(""), StartsWith("a.jsonl: no whole line; accepted: "));
  EXPECT_THAT(refused(head.substr(0, 20)), StartsWith("a.jsonl: no whole line; accepted: "));
}

TEST(ParseRecords, LeavesATornLastLineOut) {
  const std::string head = to_line(test::prompt_record());
  const Result<Records> records = parse_records(head + "{\"schema\"", "a.jsonl");
  ASSERT_TRUE(records);
  EXPECT_EQ(records->prompts.size(), 1U);
  EXPECT_EQ(records->torn_bytes, 9U);
}

TEST(RecordedLogits, AreTheLargestFiniteOnesWithTheirMargin) {
  // Weights 4, 2, 2 of 8: log-probabilities ln ½, ln ¼, ln ¼.
  const double ln2 = 0.69314718055994531;
  const std::vector<double> logits{20, -std::numeric_limits<double>::infinity(), 20 + ln2, 20};
  const Result<RecordedLogits> found = recorded_logits(logits, 3, softfloat::binary16);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->top.size(), 3U);
  EXPECT_EQ(found->top[0].id, 2);
  EXPECT_EQ(found->top[1].id, 0);
  EXPECT_EQ(found->top[2].id, 3);
  EXPECT_NEAR(found->top[0].logprob, -ln2, 1e-15);
  EXPECT_NEAR(found->top[2].logprob, -2 * ln2, 1e-15);
  EXPECT_NEAR(found->margin->logits, ln2, 1e-14);
  EXPECT_NEAR(found->margin->ulps, 64 * ln2, 1e-12);  // 20 has a unit of 2^−6 in binary16
  EXPECT_FALSE(recorded_logits(std::vector{1.0}, 0, softfloat::binary16)->margin);
  EXPECT_EQ(found->logprob, found->top[2].logprob);
  EXPECT_EQ(recorded_logits(logits, 1, softfloat::binary16)->logprob,
            -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(recorded_logits({}, 0, softfloat::binary16));
  EXPECT_THAT(recorded_logits(logits, 4, softfloat::binary16).error().message,
              HasSubstr("token 4 of 4 logits; accepted: one of them"));
}

TEST(DigestOf, IsThatOfTheLittleEndianBytes) {
  // printf '\x00\x00\x80\x3f\x00\x00\x00\x80' | sha256sum
  EXPECT_EQ(digest_of(std::vector{1.0F, -0.0F}), "0cd40d287b3669a9");
  EXPECT_EQ(digest_of(std::vector{-std::nanf("3")}), digest_of(std::vector{std::nanf("")}));
  EXPECT_NE(digest_of(std::vector{0.0F}), digest_of(std::vector{-0.0F}));
}

}  // namespace
}  // namespace kvsim
