// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// One row per way in which a tokenizer file can be wrong: the message in full.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/tokenizer.h"
#include "tests/model/gguf_bytes.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::four_bytes;
using test::gguf;
using test::gguf_entry;
using test::gguf_text;

struct Case {
  std::string content;
  std::string message;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& row : cases) {
    const auto tokenizer = Tokenizer::parse(bytes_of(row.content), "f");
    ASSERT_FALSE(tokenizer) << "accepted, though: " << row.message;
    EXPECT_EQ(tokenizer.error().kind, ErrorKind::file);
    EXPECT_EQ(tokenizer.error().message, "f: " + row.message);
    test::expect_one_line(tokenizer.error());
  }
}

/// A tokenizer.json with one byte-level token "a"; `more` stands in front of the model.
std::string json(std::string_view more, std::string_view model = R"("vocab":{"a":0},"merges":[])") {
  return std::string("{")
      .append(more)
      .append(more.empty() ? "" : ",")
      .append(R"("model":{)")
      .append(model)
      .append("}}");
}

TEST(TokenizerReject, Json) {
  const std::string no_json = "; accepted: one JSON object in UTF-8";
  expect_refused({
      {"{\"a\":", "byte 6 is not JSON" + no_json},
      {std::string("{}\0", 3), "byte 3 is zero" + no_json},
      {"{}", "model.vocab is missing; accepted: a tokenizer of type BPE"},
      {R"({"a":1,"a":2})", "key \"a\" stands twice; accepted: once"},
      {"{\"a\":" + std::string(100000, '['), "nested deeper than 32; accepted: at most that"},
      {json("", R"("vocab":[["a",0.5]])"),
       "model.vocab is missing; accepted: a tokenizer of type BPE"},
      {json("", R"("vocab":{"a":-1})"),
       "model.vocab holds a negative number; accepted: a whole number for each token (of a BPE)"},
      {json("", R"("vocab":{"a":{"b":1}})"),
       "model.vocab holds an object; accepted: a whole number for each token (of a BPE)"},
      {json("", R"("vocab":{"a":1048576})"), "token \"a\" has id 1048576; accepted: 0 to 1048575"},
      {json("", R"("vocab":{"a":0,"b":0},"merges":[])"),
       "tokens \"a\" and \"b\" have the same id 0; accepted: one token for each"},
      {json("", R"("vocab":{"a":0,"a":1},"merges":[])"),
       "tokens 0 and 1 are both \"a\"; accepted: each text once"},
      {json("", R"("vocab":{"":0})"),
       "model.vocab has an empty token; accepted: at least one byte"},
      {json("", R"("vocab":{"a":0},"merges":["ab"])"),
       "merge 0 is \"ab\"; accepted: two texts with a space between, at most 2097152 merges"},
      {json("", R"("vocab":{"a":0},"merges":[["a"]])"), "merge 0 has 1 parts; accepted: 2"},
      {json("", R"("vocab":{"a":0},"merges":[[["a"]]])"),
       "model.merges holds an array; accepted: texts, or arrays of two texts"},
      {json("", R"("vocab":{"a":0},"merges":["a b"])"),
       "merge 0 of \"a\" and \"b\": a part or the whole is no token; accepted: tokens"},
      {json("", R"("type":"WordPiece","vocab":{"a":0})"),
       "model.type is \"WordPiece\"; accepted: \"BPE\""},
      {json("", R"("end_of_word_suffix":"</w>","vocab":{"a":0})"),
       "model.end_of_word_suffix is set; accepted: null"},
      {json("", R"("unk_token":"<unk>","vocab":{"a":0})"),
       "model.unk_token is \"<unk>\"; accepted: a token of the vocabulary"},
  });
}

TEST(TokenizerReject, JsonSteps) {
  const std::string split =
      "; accepted: Isolated, Removed, MergedWithPrevious, MergedWithNext, and a String or Regex";
  expect_refused({
      {json(R"("normalizer":{"type":"BertNormalizer"})"),
       "normalizer step \"BertNormalizer\"; accepted: NFC, Prepend, Replace, Sequence"},
      {json(R"("normalizer":{"type":"Replace","pattern":{"Regex":"a"},"content":"b"})"),
       "normalizer step \"Replace\" without a String; accepted: a pattern of type String"},
      {json(R"("normalizer":3)"), "normalizer is no object; accepted: an object or null"},
      {json(R"("pre_tokenizer":{"type":"Whitespace"})"),
       "pre_tokenizer step \"Whitespace\"; accepted: ByteLevel, Split, Digits, Metaspace, "
       "Sequence"},
      {json(R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true})"),
       "pre_tokenizer step \"ByteLevel\" with add_prefix_space true; accepted: false"},
      {json(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Contiguous"})"),
       "pre_tokenizer step \"Split\" with behavior \"Contiguous\" and a pattern of 1 bytes" +
           split},
      {json(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"),
       "split pattern \"(a\": missing closing parenthesis at byte 2; accepted: a regular "
       "expression"},
      {json(R"("post_processor":{"type":"BertProcessing"})"),
       "post_processor step \"BertProcessing\"; accepted: ByteLevel, TemplateProcessing, Sequence"},
      {json(R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{}},)"
            R"({"SpecialToken":{"id":"a"}}]})"),
       "post_processor template; accepted: at most one token of the vocabulary, before the "
       "sequence"},
      {json(R"("added_tokens":[{"id":1}])"),
       "an added token has no content or no id; accepted: a text and a whole number"},
      {json(R"("added_tokens":[{"id":0,"content":"b"}])"),
       "tokens \"a\" and \"b\" have the same id 0; accepted: one token for each"},
      {json(R"("added_tokens":[{"id":1,"content":"b","single_word":true}])"),
       "added token \"b\" has single_word true; accepted: false"},
  });
}

/// A hostile pattern stops at the limit on steps instead of hanging.
TEST(TokenizerReject, PatternThatExplodes) {
  const auto tokenizer = Tokenizer::parse(
      bytes_of(json(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+$"},)"
                    R"("behavior":"Isolated"})")),
      "f");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto ids = tokenizer->encode(std::string(100, 'a') + "b");
  ASSERT_FALSE(ids);
  EXPECT_NE(ids.error().message.find("match limit exceeded; accepted: "), std::string::npos)
      << ids.error().message;
}

std::string bpe(const std::vector<std::string>& tokens, const std::vector<std::string>& merges,
                std::string_view pre = "gpt-2") {
  return gguf({gguf_entry("tokenizer.ggml.model", GgufType::text, gguf_text("gpt2")),
               gguf_entry("tokenizer.ggml.pre", GgufType::text, gguf_text(pre)),
               test::gguf_texts("tokenizer.ggml.tokens", tokens),
               test::gguf_texts("tokenizer.ggml.merges", merges)});
}

std::string sentencepiece(const std::vector<std::string>& tokens,
                          const std::vector<std::int32_t>& types,
                          const std::vector<float>& scores) {
  return gguf({gguf_entry("tokenizer.ggml.model", GgufType::text, gguf_text("llama")),
               test::gguf_texts("tokenizer.ggml.tokens", tokens),
               test::gguf_int32s("tokenizer.ggml.token_type", types),
               test::gguf_floats("tokenizer.ggml.scores", scores),
               gguf_entry("tokenizer.ggml.bos_token_id", GgufType::uint32, four_bytes(7))});
}

TEST(TokenizerReject, Gguf) {
  const std::string kinds = "; accepted: \"llama\" (SentencePiece) and \"gpt2\" (byte-level BPE)";
  expect_refused({
      {gguf({}), "tokenizer.ggml.model is missing" + kinds},
      {gguf({gguf_entry("tokenizer.ggml.model", GgufType::text, gguf_text("bert"))}),
       "tokenizer.ggml.model is \"bert\"" + kinds},
      {bpe({"a"}, {}, "tekken"),
       "tokenizer.ggml.pre is \"tekken\"; accepted: gpt-2, starcoder, refact, smollm, qwen2, "
       "llama-bpe"},
      {bpe({}, {}), "0 tokens; accepted: 1 to 1048576"},
      {bpe({"a"}, {"a"}), "merge \"a\"; accepted: two texts with a space between"},
      {bpe({"a"}, {"a a"}),
       "merge 0 of \"a\" and \"a\": a part or the whole is no token; accepted: tokens"},
      {bpe({"a", "a"}, {}), "tokens 0 and 1 are both \"a\"; accepted: each text once"},
      {bpe({std::string(65537, 'a')}, {}), "token 0 has 65537 bytes; accepted: at most 65536"},
      {sentencepiece({"a"}, {1, 1}, {0}),
       "tokenizer.ggml.token_type has 2 items; accepted: 1, one for each token"},
      {sentencepiece({"a"}, {7}, {0}), "token 0 has type 7; accepted: 1 to 6"},
      {sentencepiece({"a"}, {2}, {0}), "tokenizer.ggml.bos_token_id is 7; accepted: 0 to 0"},
  });
}

TEST(TokenizerReject, PiecesThatSentencePieceWouldNotTake) {
  const auto eight = [](std::size_t at, std::string text, std::int32_t type, float score) {
    std::vector<std::string> tokens = {"<u>", "b", "c", "d", "e", "f", "g", "h"};
    std::vector<std::int32_t> types = {2, 1, 1, 1, 1, 1, 1, 1};
    std::vector<float> scores(8, 0.0F);
    tokens[at] = std::move(text);
    types[at] = type;
    scores[at] = score;
    return sentencepiece(tokens, types, scores);
  };
  using std::string_literals::operator""s;
  expect_refused({
      {eight(1, "", 1, 0), "token 1 \"\" is empty; accepted: at least one byte"},
      {eight(1, "c", 1, 0), "token 2 \"c\" stands twice; accepted: once"},
      {eight(1, "x", 1, std::numeric_limits<float>::quiet_NaN()),
       "token 1 \"x\" has a score that is not finite; accepted: finite numbers"},
      {eight(1, "a\0b"s, 4, 0), "token 1 \"a\\x00b\" holds a zero byte; accepted: texts without"},
      {eight(1, "x", 2, 0), "2 tokens of type unknown; accepted: exactly 1"},
      {eight(0, "x", 1, 0), "0 tokens of type unknown; accepted: exactly 1"},
      {eight(1, "<0x41>", 6, 0), "1 byte tokens; accepted: 256 or none"},
      {eight(1, "<0x4>", 6, 0),
       "token 1 \"<0x4>\" is a byte token; accepted: <0x00> to <0xFF>, each once"},
  });
}

TEST(TokenizerReject, SentencePieceModel) {
  using std::string_literals::operator""s;
  const std::string piece = "\n\x03\n\x01"s + "a";
  const std::string whole =
      "; accepted: a SentencePiece ModelProto with pieces, trainer and "
      "normalizer";
  expect_refused({
      {piece, "is incomplete" + whole},
      {"\n\x7f"s + "abc", "is broken off" + whole},
      {piece + std::string(11, '\xff'), "is broken off" + whole},
      {"\n\x02\n\x7f"s, "piece 0 is broken off; accepted: a ModelProto"},
      {"\n\x05\n\x01"s + "a\x18\x09", "piece 0 has type 9; accepted: 1 to 6"},
      {piece + "\x12\0"s, "model type is 1; accepted: 2 (BPE: Llama, Mistral, Gemma)"},
      {piece + "\x12\x02\x18\x02\x1a\x03\x12\x01x"s,
       "the normalizer has a character map of 1 bytes; accepted: none (\"identity\")"},
      {piece + "\x12\x02\x18\x02\x12\x02\x18\x02"s, "two trainer parts; accepted: one"},
  });
}

TEST(TokenizerReject, Llama2c) {
  const std::string kinds =
      "is no tokenizer; accepted: tokenizer.json, a SentencePiece tokenizer.model, a GGUF file, "
      "llama2.c's tokenizer .bin";
  const auto token = [](std::int32_t length, std::string_view text) {
    return four_bytes(0) + four_bytes(static_cast<std::uint32_t>(length)) + std::string(text);
  };
  expect_refused({
      {"", kinds},
      {"abc", kinds},
      {std::string(8, '\0'), kinds},
      {std::string(8, '\xff'), kinds},
      {four_bytes(7), "has 0 tokens; accepted: at least 259"},
      {four_bytes(7) + "1234567", "token 0 has 7 bytes of 8; accepted: score and length"},
      {four_bytes(7) + token(8, "12345678"),
       "token 0 has length 8, where 8 bytes follow; accepted: 1 to 7, the longest that the file "
       "names"},
      {four_bytes(7) + token(-1, "x"),
       "token 0 has length -1, where 1 bytes follow; accepted: 1 to 7, the longest that the file "
       "names"},
      {four_bytes(7) + token(3, "xy"),
       "token 0 has length 3, where 2 bytes follow; accepted: 1 to 7, the longest that the file "
       "names"},
      {four_bytes(7) + token(1, "u") + token(1, "b") + token(1, "e") + token(1, "x"),
       "token 3 is no byte token; accepted: <0x00>"},
  });
}

TEST(TokenizerReject, Paths) {
  const test::TemporaryFolder folder;
  const auto none = Tokenizer::load(folder.path().string());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            folder.path().string() +
                ": has no tokenizer; accepted: a folder with tokenizer.json or tokenizer.model");
  test::write_file(folder.file("tokenizer.json"), json(""));
  const auto load_with = [&](std::string_view config) {
    test::write_file(folder.file("tokenizer_config.json"), config);
    return Tokenizer::load(folder.path().string());
  };
  const std::string config = folder.file("tokenizer_config.json") + ": ";
  EXPECT_EQ(load_with("[]").error().message,
            config + "is no JSON object; accepted: one JSON object");
  EXPECT_EQ(load_with(R"({"bos_token":3})").error().message,
            config +
                "bos_token is of type number; accepted: a text, or an object with "
                "\"content\"");
  EXPECT_EQ(load_with(R"({"eos_token":{"content":"b"}})").error().message,
            config + "eos_token is \"b\"; accepted: a token of the vocabulary");
  EXPECT_EQ(load_with(R"({"add_bos_token":"x"})").error().message,
            config + "add_bos_token is of type string; accepted: true or false");
  const auto good = load_with(R"({"bos_token":"a","eos_token":{"content":"a"},)"
                              R"("add_bos_token":true})");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->bos(), 0);
  EXPECT_EQ(good->eos(), 0);
  EXPECT_TRUE(good->adds_bos());
}

}  // namespace
}  // namespace kvsim
