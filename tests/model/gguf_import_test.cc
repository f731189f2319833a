// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/gguf_rope.h"
#include "model/tokenizer.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "tests/model/gguf_model_bytes.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;
using test::GgufModelBytes;
using test::GgufTensorBytes;

class GgufImport : public testing::Test {
 protected:
  std::string write(const GgufModelBytes& model) {
    const std::string path = (root_ / "model.gguf").string();
    std::ofstream(path, std::ios::binary) << model.bytes();
    return path;
  }

  /// The error of a file, which must be one line.
  std::string refusal(const GgufModelBytes& model) {
    const auto file = GgufFile::open(write(model), Dtype::bf16);
    if (file) return "accepted";
    EXPECT_EQ(file.error().kind, ErrorKind::file);
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    return file.error().message;
  }

  /// Imports with the values that the model was made of.
  Result<bool> import(const GgufModelBytes& model, Dtype dtype) {
    const auto file = GgufFile::open(write(model), dtype);
    if (!file) return file.error();
    std::vector<float> values;
    for (const std::string& name : file->tensor_names()) {
      const std::vector<float> tensor = model.values(name);
      values.insert(values.end(), tensor.begin(), tensor.end());
    }
    std::size_t at = 0;
    const auto source = [&](std::span<float> out) -> Result<bool> {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
      at += out.size();
      return true;
    };
    auto folder = FolderWriter::make(out());
    if (!folder) return folder.error();
    const auto done = import_gguf(*file, source, [](double) {}, *folder);
    if (!done) return done;
    EXPECT_EQ(at, values.size());
    return folder->finish();
  }

  [[nodiscard]] std::string out() const { return (root_ / "out").string(); }

  test::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
};

// The halves of a bfloat16's last place decide; everything below only says on which side.
TEST(ToBfloat16, EqualsSoftfloat) {
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    if ((upper & 0x7f80U) == 0x7f80U) continue;  // infinities and NaN are refused before
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const std::uint32_t bits = upper << 16U | lower;
      const auto expected = softfloat::convert(softfloat::bfloat16, softfloat::binary32, bits);
      ASSERT_EQ(to_bfloat16(std::bit_cast<float>(bits)), expected.bits) << std::hex << bits;
    }
  }
}

// What the converter of llama.cpp does: rows as [2][half] become [half][2].
TEST(UnpermuteHead, TakesTheConvertersPermutationBack) {
  for (const std::size_t head_dim : {2U, 4U, 8U, 64U}) {
    const std::size_t columns = 3;
    std::vector<float> original(head_dim * columns);
    for (std::size_t i = 0; i < original.size(); ++i) original[i] = static_cast<float>(i);
    std::vector<float> permuted;
    for (std::size_t i = 0; i < head_dim / 2; ++i) {
      for (std::size_t j = 0; j < 2; ++j) {
        const std::size_t row = j * (head_dim / 2) + i;
        for (std::size_t c = 0; c < columns; ++c) permuted.push_back(original[row * columns + c]);
      }
    }
    unpermute_head(permuted, columns);
    EXPECT_EQ(permuted, original) << head_dim;
  }
}

TEST_F(GgufImport, WritesALlamaThatLoads) {
  const GgufModelBytes model = test::small_gguf("llama");
  const auto done = import(model, Dtype::f32);
  ASSERT_TRUE(done) << done.error().message;
  const auto checkpoint = load_checkpoint(out());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.hidden, 8);
  EXPECT_EQ(config.ffn, 12);
  EXPECT_EQ(config.query_heads, 2);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.vocabulary, 6);
  EXPECT_EQ(config.norm_epsilon, 1e-5);  // not what float32 makes of it
  EXPECT_EQ(config.rope_base, 100000);
  EXPECT_EQ(config.max_positions, 64);
  EXPECT_TRUE(config.tied_embedding);
  EXPECT_EQ(config.eos, std::vector<std::int64_t>{2});
  EXPECT_EQ(config.bos, 1);
  // Rows of q: of each head of four, stored rows 0 and 2 come first, then 1 and 3.
  const Weight* q = checkpoint->find(WeightRole::q, 1);
  ASSERT_NE(q, nullptr);
  const std::vector<float> stored = model.values("blk.1.attn_q.weight");
  const std::vector<float> read = *checkpoint->read(*q);
  const std::vector<std::size_t> rows{0, 2, 1, 3, 4, 6, 5, 7};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t c = 0; c < 8; ++c) EXPECT_EQ(read[row * 8 + c], stored[rows[row] * 8 + c]);
  }
  EXPECT_EQ(*checkpoint->read(*checkpoint->find(WeightRole::v, 0)),
            model.values("blk.0.attn_v.weight"));
}

TEST_F(GgufImport, RoundsToBfloat16) {
  GgufModelBytes model = test::small_gguf("llama");
  model.set_value("blk.0.ffn_norm.weight", 0, 1.00390625F);  // 1 + 2^-8: a tie, to even
  model.set_value("blk.0.ffn_norm.weight", 1, 1.01171875F);  // 1 + 3·2^-8: a tie, to even
  const auto done = import(model, Dtype::bf16);
  ASSERT_TRUE(done) << done.error().message;
  const auto checkpoint = load_checkpoint(out());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->config().dtype, "bfloat16");
  const std::vector<float> norm = *checkpoint->read(*checkpoint->find(WeightRole::mlp_norm, 0));
  EXPECT_EQ(norm[0], 1.0F);
  EXPECT_EQ(norm[1], 1.015625F);
}

TEST_F(GgufImport, TakesOneOffGemmasNorms) {
  GgufModelBytes model = test::small_gguf("gemma3");
  model.set_value("blk.0.attn_q_norm.weight", 1, 1.25F);
  const auto done = import(model, Dtype::f32);
  ASSERT_TRUE(done) << done.error().message;
  const auto checkpoint = load_checkpoint(out());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ((*checkpoint->read(*checkpoint->find(WeightRole::q_norm, 0)))[1], 0.25F);
  const ModelConfig& config = checkpoint->config();
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.window, 16);
  EXPECT_EQ(config.has_window, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(config.window_rope_base, 10000);
  EXPECT_EQ(config.rope_base, 1000000);
  EXPECT_EQ(config.query_pre_attn_scalar, 4);
  // q and k are not permuted: Gemma rotates halves.
  EXPECT_EQ(*checkpoint->read(*checkpoint->find(WeightRole::q, 0)),
            model.values("blk.0.attn_q.weight"));
}

TEST_F(GgufImport, ReadsQwensBiasesAndGemma2sCaps) {
  const GgufModelBytes qwen = test::small_gguf("qwen2");
  ASSERT_TRUE(import(qwen, Dtype::f32));
  const auto checkpoint = load_checkpoint(out());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(*checkpoint->read(*checkpoint->find(WeightRole::k_bias, 1)),
            qwen.values("blk.1.attn_k.bias"));
  fs::remove_all(out());
  ASSERT_TRUE(import(test::small_gguf("qwen3"), Dtype::f32));
  EXPECT_TRUE(load_checkpoint(out())->config().qk_norm);
  fs::remove_all(out());
  ASSERT_TRUE(import(test::small_gguf("gemma2"), Dtype::f32));
  const auto gemma = load_checkpoint(out());
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(gemma->config().attention_soft_cap, 50);
  EXPECT_EQ(gemma->config().final_soft_cap, 30);
  EXPECT_EQ(gemma->config().has_window, (std::vector<bool>{true, false}));
}

TEST_F(GgufImport, StoresTheTokenizer) {
  GgufModelBytes model = test::small_gguf("llama");
  model.add_bpe_tokenizer();
  ASSERT_TRUE(import(model, Dtype::bf16));
  const auto stored = Tokenizer::load(out());
  ASSERT_TRUE(stored) << stored.error().message;
  const auto direct = Tokenizer::load((root_ / "model.gguf").string());
  ASSERT_TRUE(direct) << direct.error().message;
  EXPECT_EQ(stored->kind(), "byte-level BPE");
  for (const std::string text : {"ab", "ab<|end|>b", "ba ab"}) {
    const auto ids = direct->encode(text);
    ASSERT_EQ(static_cast<bool>(ids), static_cast<bool>(stored->encode(text))) << text;
    if (ids) {
      EXPECT_EQ(*stored->encode(text), *ids) << text;
      EXPECT_EQ(*stored->decode(*ids, true), *direct->decode(*ids, true));
    }
  }
  EXPECT_EQ(stored->bos(), direct->bos());
  EXPECT_EQ(stored->eos(), direct->eos());
  EXPECT_EQ(stored->adds_bos(), direct->adds_bos());
}

TEST_F(GgufImport, RefusesByName) {
  GgufModelBytes model = test::small_gguf("llama");
  model.set_architecture("mamba");
  EXPECT_NE(refusal(model).find(R"(general.architecture is "mamba"; accepted: llama, gemma2)"),
            std::string::npos);

  model = test::small_gguf("llama");
  model.remove("blk.1.ffn_up.weight");
  EXPECT_NE(refusal(model).find(R"(tensor "blk.1.ffn_up.weight" [12, 8] is missing)"),
            std::string::npos);

  model = test::small_gguf("llama");
  model.add({"blk.0.attn_sinks.weight", {2}, {1, 1}});
  EXPECT_NE(refusal(model).find(R"("blk.0.attn_sinks.weight": no part of a llama model)"),
            std::string::npos);

  model = test::small_gguf("llama");
  model.add({"rope_freqs.weight", {2}, {1, 8}});
  EXPECT_NE(refusal(model).find("float32 factors of Llama 3.1"), std::string::npos);
  model.add_text("llama.rope.scaling.type", "linear");
  EXPECT_NE(refusal(model).find(R"("rope_freqs.weight" beside key)"), std::string::npos);

  model = test::small_gguf("qwen2");
  model.add({"rope_freqs.weight", {2}, {1, 8}});
  EXPECT_NE(refusal(model).find(R"("rope_freqs.weight": no part of a qwen2)"), std::string::npos);

  model = test::small_gguf("llama");
  model.remove("blk.0.ffn_up.weight");
  model.add({"blk.0.ffn_up.weight", {8, 8}, std::vector<float>(64, 1)});
  EXPECT_NE(refusal(model).find("has shape [8, 8]; accepted: [12, 8]"), std::string::npos);

  model = test::small_gguf("llama");
  model.add_whole("llama.expert_count", 8);
  EXPECT_NE(refusal(model).find("mixture of experts"), std::string::npos);

  model = test::small_gguf("llama");
  model.add_whole("llama.residual_scale", 8);
  EXPECT_NE(refusal(model).find(R"("llama.residual_scale" may change arithmetic)"),
            std::string::npos);

  model = test::small_gguf("llama");
  model.add_text("llama.rope.scaling.type", "yarn");
  EXPECT_NE(refusal(model).find(R"(is "yarn"; accepted: none, linear)"), std::string::npos);

  model = test::small_gguf("llama");
  model.cut(1);
  EXPECT_NE(refusal(model).find("accepted: a whole file"), std::string::npos);
}

TEST_F(GgufImport, RefusesWeightsThatAreNoNumbers) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 3.4e38F}) {
    GgufModelBytes model = test::small_gguf("llama");
    model.set_value("blk.1.attn_norm.weight", 3, bad);
    const auto done = import(model, Dtype::bf16);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find(R"("blk.1.attn_norm.weight": element 3 is)"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(out()));
    EXPECT_FALSE(fs::exists(out() + ".partial"));
  }
}

// Every cut and every changed byte of the head: an error or a model, no crash, and no message of
// several lines. The sanitizers watch.
TEST(GgufHead, IsReadWithoutTrust) {
  GgufModelBytes model = test::small_gguf("llama");
  model.add_bpe_tokenizer();
  const std::string whole = model.bytes();
  const std::size_t head = whole.size() - 4 * 2 * 600;  // behind it there are only weights
  const auto look = [](const std::string& bytes) {
    const auto metadata = GgufMetadata::parse(test::bytes_of(bytes), "f");
    if (!metadata) return metadata.error().message;
    const auto tensors = read_gguf_tensors(test::bytes_of(bytes), *metadata, "f");
    if (!tensors) return tensors.error().message;
    const auto read = read_gguf_model(*metadata, *tensors, Dtype::bf16, "f");
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(look(whole), "");
  for (std::size_t cut = 1; cut < whole.size(); cut += 7) {
    EXPECT_NE(look(whole.substr(0, whole.size() - cut)), "") << cut;
  }
  for (std::size_t at = 0; at < head; at += 3) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      EXPECT_EQ(look(bytes).find('\n'), std::string::npos) << at;
    }
  }
}

// Expected factors: transformers' formula, worked out to 40 digits.
TEST(GgufRope, FactorsOfLlama31SayHowTheyWereMade) {
  std::vector<float> factors(32, 1.0F);  // Llama 3.2 1B: head_dim 64, base 500000, factor 32
  std::fill(factors.begin() + 15, factors.end(), 32.0F);
  factors[15] = 1.651329246F;
  factors[16] = 3.292262103F;
  factors[17] = 9.666728979F;
  const auto found = llama3_rope_scaling(factors, 500000, 64);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->factor, 32);
  EXPECT_FALSE(llama3_rope_scaling(factors, 10000, 64));
  EXPECT_FALSE(llama3_rope_scaling(factors, 500000, 128));
  factors[16] *= 1.001F;  // another low or high frequency factor
  EXPECT_FALSE(llama3_rope_scaling(factors, 500000, 64));
  EXPECT_FALSE(llama3_rope_scaling(std::vector<float>(32, 1.0F), 500000, 64));
  const std::vector<float> eight{1, 1, 1, 1, 2.694529688F, 8, 8, 8};
  EXPECT_EQ(llama3_rope_scaling(eight, 500000, 16).value().factor, 8);
}

TEST_F(GgufImport, ScalesRopeAsLlama31Does) {
  GgufModelBytes model = test::small_gguf("llama", 1e10F);  // wavelengths 6.28 and 628319
  model.add({"rope_freqs.weight", {2}, {1, 8}});
  const auto file = GgufFile::open(write(model), Dtype::bf16);
  ASSERT_TRUE(file) << file.error().message;
  const ModelConfig& config = file->model().config;
  EXPECT_EQ(config.rope_scaling, ConfigRopeScaling::llama3);
  EXPECT_EQ(config.rope_factor, 8);
  EXPECT_EQ(config.rope_low_frequency_factor, 1);
  EXPECT_EQ(config.rope_high_frequency_factor, 4);
  EXPECT_EQ(config.rope_original_positions, 8192);
  // Nothing but the configuration needs it.
  const auto names = file->tensor_names();
  EXPECT_EQ(std::ranges::find(names, "rope_freqs.weight"), names.end());
  model.add_text("llama.rope.scaling.type", "linear");
  EXPECT_NE(refusal(model).find("beside key"), std::string::npos);
}

TEST_F(GgufImport, LinearScalingIsKept) {
  GgufModelBytes model = test::small_gguf("llama");
  model.add_text("llama.rope.scaling.type", "linear");
  model.add_float("llama.rope.scaling.factor", 4);
  const auto file = GgufFile::open(write(model), Dtype::bf16);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->model().config.rope_scaling, ConfigRopeScaling::linear);
  EXPECT_EQ(file->model().config.rope_factor, 4);
}

}  // namespace
}  // namespace kvsim
