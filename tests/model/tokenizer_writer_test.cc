// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/tokenizer_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/vocabulary.h"
#include "tests/model/gguf_bytes.h"

namespace kvsim {
namespace {

void expect_same_pieces(const Vocabulary& found, const Vocabulary& expected) {
  ASSERT_EQ(found.pieces.size(), expected.pieces.size());
  for (std::size_t i = 0; i < expected.pieces.size(); ++i) {
    EXPECT_EQ(found.pieces[i].text, expected.pieces[i].text) << i;
    EXPECT_EQ(found.pieces[i].score, expected.pieces[i].score) << i;
    EXPECT_EQ(found.pieces[i].kind, expected.pieces[i].kind) << i;
  }
  EXPECT_EQ(found.bos, expected.bos);
  EXPECT_EQ(found.eos, expected.eos);
}

// The reader was tested against models of the SentencePiece library.
TEST(TokenizerWriter, ASentencePieceModelReadsBack) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::sentencepiece;
  vocabulary.pieces = {{.text = "<unk>", .kind = PieceKind::unknown},
                       {.text = "<s>", .kind = PieceKind::control},
                       {.text = "</s>", .kind = PieceKind::control},
                       {.text = "<0x0A>", .kind = PieceKind::byte},
                       {.text = "\u2581a", .score = -1.5F},
                       {.text = "<turn>", .kind = PieceKind::user_defined},
                       {.text = std::string(300, 'x'), .score = -0x1p-20F},
                       {.text = "<unused>", .kind = PieceKind::unused}};
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.unknown = 0;
  for (const bool flag : {false, true}) {
    vocabulary.space_prefix = flag;
    vocabulary.remove_extra_whitespace = !flag;
    const std::string bytes = sentencepiece_model(vocabulary);
    const auto found = read_sentencepiece_model(std::as_bytes(std::span(bytes)), "f");
    ASSERT_TRUE(found) << found.error().message;
    expect_same_pieces(*found, vocabulary);
    EXPECT_EQ(found->unknown, vocabulary.unknown);
    EXPECT_EQ(found->space_prefix, flag);
    EXPECT_EQ(found->remove_extra_whitespace, !flag);
  }
  vocabulary.bos.reset();
  vocabulary.unknown.reset();
  const std::string bytes = sentencepiece_model(vocabulary);
  const auto found = read_sentencepiece_model(std::as_bytes(std::span(bytes)), "f");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->bos, std::nullopt);
  EXPECT_EQ(found->unknown, std::nullopt);
}

TEST(TokenizerWriter, ATokenizerJsonReadsBack) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_level_bpe;
  vocabulary.pieces = {{.text = "a"},
                       {.text = "\""},
                       {.text = "<|\u00e9\\n|>", .kind = PieceKind::control},
                       {.text = "\u0120b"},
                       {.text = "<x>",
                        .kind = PieceKind::user_defined,
                        .takes_left_space = true,
                        .takes_right_space = true}};
  vocabulary.merges = {{"\u0120", "b"}, {"a", "\""}};
  vocabulary.words = {{.pattern = R"(\p{N})"}, {.pattern = " ?[^\\s]+|\\s+"}};
  vocabulary.normalizer = {{.kind = NormalizerStep::Kind::nfc}};
  vocabulary.ignore_merges = true;
  for (const bool adds : {false, true}) {
    vocabulary.add_bos = adds;
    vocabulary.bos = adds ? std::optional<TokenId>(2) : std::nullopt;
    const auto text = tokenizer_json(vocabulary);
    ASSERT_TRUE(text) << text.error().message;
    const auto found = read_tokenizer_json(*text, "f");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->kind, vocabulary.kind);
    expect_same_pieces(*found, vocabulary);
    EXPECT_TRUE(found->pieces[4].takes_left_space && found->pieces[4].takes_right_space);
    EXPECT_EQ(found->merges, vocabulary.merges);
    ASSERT_EQ(found->words.size(), vocabulary.words.size());
    for (std::size_t i = 0; i < vocabulary.words.size(); ++i) {
      EXPECT_EQ(found->words[i].pattern, vocabulary.words[i].pattern);
    }
    ASSERT_EQ(found->normalizer.size(), 1U);
    EXPECT_EQ(found->normalizer[0].kind, NormalizerStep::Kind::nfc);
    EXPECT_TRUE(found->ignore_merges);
    EXPECT_EQ(found->add_bos, adds);
  }
}

// As the GGUF files of Gemma 3 are: <unk> has the type of control tokens.
TEST(TokenizerWriter, AnUnknownTokenThatOnlyItsIdTells) {
  const std::string bytes = test::gguf({
      test::gguf_entry("tokenizer.ggml.model", GgufType::text, test::gguf_text("llama")),
      test::gguf_texts("tokenizer.ggml.tokens", {"<pad>", "<eos>", "<unk>", "a"}),
      test::gguf_floats("tokenizer.ggml.scores", {0, 0, 0, -1}),
      test::gguf_int32s("tokenizer.ggml.token_type", {3, 3, 3, 1}),
      test::gguf_entry("tokenizer.ggml.unknown_token_id", GgufType::uint32, test::four_bytes(2)),
  });
  const auto files = gguf_tokenizer_files(test::bytes_of(bytes), "GemmaTokenizer", "f");
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->front().name, "tokenizer.model");
  const auto tokenizer = Tokenizer::parse(test::bytes_of(files->front().text), "g");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_TRUE(Tokenizer::parse(test::bytes_of(bytes), "f"));
}

TEST(TokenizerWriter, RefusesTokensThatAreNotUtf8) {
  Vocabulary vocabulary;
  vocabulary.pieces = {{.text = "\xff"}};
  EXPECT_FALSE(tokenizer_json(vocabulary));
}

TEST(TokenizerWriter, NoTokenizerIsNoFile) {
  const std::string bytes = test::gguf({});
  const auto files = gguf_tokenizer_files(test::bytes_of(bytes), "LlamaTokenizer", "f");
  ASSERT_TRUE(files) << files.error().message;
  EXPECT_TRUE(files->empty());
}

}  // namespace
}  // namespace kvsim
