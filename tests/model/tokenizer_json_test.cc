// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Small vocabularies whose ids are worked out by hand, in each of the file formats.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/tokenizer.h"
#include "tests/model/gguf_bytes.h"

namespace kvsim {
namespace {

using Ids = std::vector<TokenId>;
using test::bytes_of;

Tokenizer parse(const std::string& file) {
  auto tokenizer = Tokenizer::parse(bytes_of(file), "f");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return std::move(*tokenizer);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : Ids();
}

std::string decode(const Tokenizer& tokenizer, const Ids& ids) {
  const auto text = tokenizer.decode(ids);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : std::string();
}

/// Letters a to d are 0 to 3; "ab" 4, "bc" 5, "abc" 6, "Ġ" (space) 7, "Ġa" 8, "1" 9.
std::string byte_level(std::string_view merges, std::string_view pre_tokenizer,
                       std::string_view more = "", std::string_view in_model = "") {
  std::string text = R"({"added_tokens":[{"id":10,"content":"<end>","special":true},)"
                     R"({"id":11,"content":"<e","special":false},)"
                     R"({"id":12,"content":"<trim>","special":true,"lstrip":true,"rstrip":true}],)"
                     R"("pre_tokenizer":)";
  text.append(pre_tokenizer).append(more).append(R"(,"model":{"type":"BPE")").append(in_model);
  text += R"(,"vocab":{"a":0,"b":1,"c":2,"d":3,"ab":4,"bc":5,"abc":6,"Ġ":7,"Ġa":8,"1":9},)";
  return text.append(R"("merges":)").append(merges).append("}}");
}

constexpr const char* plain = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";

TEST(BytePairEncoding, EarlierMergesGoFirst) {
  // "bc" before "ab": abc is a + bc, which has no merge; with (a, bc) last it becomes one token.
  EXPECT_EQ(encode(parse(byte_level(R"(["b c","a b"])", plain)), "abc"), (Ids{0, 5}));
  EXPECT_EQ(encode(parse(byte_level(R"(["a b","b c"])", plain)), "abc"), (Ids{4, 2}));
  EXPECT_EQ(encode(parse(byte_level(R"(["b c","a b","a bc"])", plain)), "abcab"), (Ids{6, 4}));
  // Pairs written as arrays, as newer files do; of equal pairs the left one goes first.
  EXPECT_EQ(encode(parse(byte_level(R"([["a","b"],["ab","c"]])", plain)), "ababc"), (Ids{4, 6}));
}

TEST(BytePairEncoding, MergesStayInsideWords) {
  const Tokenizer tokenizer = parse(byte_level(R"(["Ġ a","a b"])", plain));
  EXPECT_EQ(encode(tokenizer, "a ab  a"), (Ids{0, 8, 1, 7, 8}));
  EXPECT_EQ(decode(tokenizer, {0, 8, 1, 7, 8}), "a ab  a");
  // "11" is one word for GPT-2's rule and two where digits are split.
  const std::string digits =
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)" +
      std::string(plain) + "]}";
  EXPECT_EQ(encode(parse(byte_level(R"(["a b"])", digits)), "ab1a"), (Ids{4, 9, 0}));
}

/// U+180E has been no white space since Unicode 6.3. GPT-2's rule then keeps it with the sign
/// before it in one word, where a merge of the two may act; U+2003, a space, would begin a word.
TEST(BytePairEncoding, MongolianVowelSeparatorIsNoSpace) {
  const std::string file = R"({"pre_tokenizer":)" + std::string(plain) +
                           R"(,"model":{"vocab":{"+":0,"á":1,"ł":2,"İ":3,"+á":4,"â":5,"Ģ":6,"ĥ":7,)"
                           R"("+â":8},"merges":["+ á","+ â"]}})";
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(encode(tokenizer, "+\xe1\xa0\x8e").front(), 4);
  EXPECT_EQ(encode(tokenizer, "+\xe2\x80\x83").front(), 0);
}

TEST(BytePairEncoding, IgnoreMerges) {
  // "abc" is a token, though no merge makes it.
  const Tokenizer tokenizer =
      parse(byte_level(R"(["a b"])", plain, "", R"(,"ignore_merges":true)"));
  EXPECT_EQ(encode(tokenizer, "abc abc"), (Ids{6, 7, 4, 2}));
}

TEST(BytePairEncoding, SpecialTokens) {
  const Tokenizer tokenizer = parse(byte_level(R"(["a b"])", plain));
  EXPECT_EQ(encode(tokenizer, "ab<end>ab"), (Ids{4, 10, 4}));
  EXPECT_EQ(encode(tokenizer, "<ea"), (Ids{11, 0}));               // the longest that fits
  EXPECT_EQ(encode(tokenizer, "a \n<trim>  b"), (Ids{0, 12, 1}));  // takes white space with it
  EXPECT_EQ(decode(tokenizer, {4, 10, 11}), "ab<e");
  const auto as_text = tokenizer.encode("<e", {.add_bos = false, .special_tokens = false});
  ASSERT_TRUE(as_text);
  EXPECT_EQ(*as_text, Ids{11});
}

TEST(BytePairEncoding, ByteWithoutToken) {
  const auto ids = parse(byte_level("[]", plain)).encode("ax");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().message,
            "text has byte 0x78, for which the vocabulary has no token; accepted: texts of its "
            "tokens");
}

TEST(BytePairEncoding, TemplateAddsBos) {
  const std::string file = byte_level(
      "[]", plain,
      R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<end>",)"
      R"("type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<end>":{"id":)"
      R"("<end>","ids":[10],"tokens":["<end>"]}}})");
  const Tokenizer tokenizer = parse(file);
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(encode(tokenizer, "a"), (Ids{10, 0}));
}

TEST(BytePairEncoding, NormalisationFormC) {
  // "é" in two code points is composed: C3 A9 in byte-level spelling is "Ã©".
  const std::string file =
      R"({"normalizer":{"type":"NFC"},"pre_tokenizer":)" + std::string(plain) +
      R"(,"model":{"type":"BPE","vocab":{"Ã":0,"©":1,"Ã©":2,"e":3},"merges":["Ã ©"]}})";
  EXPECT_EQ(encode(parse(file), "e\xcc\x81"), Ids{2});
}

/// "▁" 0, a 1, "▁a" 2, <0xC3> 3, <0xA9> 4, <unk> 5.
std::string characters(std::string_view steps, bool fallback) {
  return std::string("{").append(steps).append(
             R"(,"added_tokens":[],"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,)"
             R"("byte_fallback":)") +
         (fallback ? "true" : "false") +
         R"(,"vocab":{"▁":0,"a":1,"▁a":2,"<0xC3>":3,"<0xA9>":4,"<unk>":5},"merges":["▁ a"]}})";
}

TEST(CharacterBpe, FallbackAndUnknown) {
  const std::string steps =
      R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
      R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
  const Tokenizer tokenizer = parse(characters(steps, true));
  EXPECT_EQ(tokenizer.kind(), "BPE on characters");
  EXPECT_EQ(encode(tokenizer, "a é"), (Ids{2, 0, 3, 4}));
  EXPECT_EQ(decode(tokenizer, {2, 0, 3, 4}), "a é");
  EXPECT_EQ(encode(tokenizer, " a"), (Ids{0, 2}));
  EXPECT_EQ(encode(tokenizer, "xx"), (Ids{0, 5}));  // no bytes for x; a run is one token
  EXPECT_EQ(encode(parse(characters(steps, false)), "é"), (Ids{0, 5}));
}

TEST(CharacterBpe, Metaspace) {
  const std::string steps =
      R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first",)"
      R"("split":false})";
  const Tokenizer tokenizer = parse(characters(steps, true));
  EXPECT_EQ(encode(tokenizer, "a a"), (Ids{2, 2}));
  EXPECT_EQ(encode(tokenizer, " a"), Ids{2});  // the mark is there already
}

/// SentencePiece merges by score, not by a list: of "ab" and "bc" the higher goes first.
TEST(SentencePiece, ScoresFromGguf) {
  const std::vector<std::string> tokens = {"<unk>", "<s>", "▁", "a", "b", "c", "ab", "bc", "▁a"};
  const std::vector<std::int32_t> types = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  const auto file = [&](float ab, float bc) {
    using test::gguf_entry;
    return test::gguf(
        {gguf_entry("tokenizer.ggml.model", GgufType::text, test::gguf_text("llama")),
         test::gguf_texts("tokenizer.ggml.tokens", tokens),
         test::gguf_int32s("tokenizer.ggml.token_type", types),
         test::gguf_floats("tokenizer.ggml.scores", {0, 0, -9, -9, -9, -9, ab, bc, -8}),
         gguf_entry("tokenizer.ggml.bos_token_id", GgufType::uint32, test::four_bytes(1)),
         gguf_entry("tokenizer.ggml.unknown_token_id", GgufType::uint32, test::four_bytes(0))});
  };
  EXPECT_EQ(encode(parse(file(-1, -2)), "abc"), (Ids{1, 2, 6, 5}));
  EXPECT_EQ(encode(parse(file(-2, -1)), "abc"), (Ids{1, 8, 7}));
  EXPECT_EQ(encode(parse(file(-2, -1)), "a<s>xx"), (Ids{1, 8, 1, 2, 0}));
  EXPECT_EQ(decode(parse(file(-2, -1)), {1, 8, 7}), "abc");
}

}  // namespace
}  // namespace kvsim
