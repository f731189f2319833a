// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/llama2c.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::bytes_of;
using Header = std::array<std::int32_t, 7>;

std::string int32_bytes(std::int32_t value) {
  return test::eight_bytes(std::bit_cast<std::uint32_t>(value)).substr(0, 4);
}

/// A file whose number i, counted after the header, is i: a weight's first number is its place.
std::string counting_file(const Header& header, std::int64_t numbers) {
  std::string file;
  for (const std::int32_t field : header) file += int32_bytes(field);
  for (std::int64_t i = 0; i < numbers; ++i) {
    file += int32_bytes(std::bit_cast<std::int32_t>(static_cast<float>(i)));
  }
  return file;
}

// dim 8, hidden_dim 10, 2 layers, 4 heads, 2 K/V heads (of 2), vocabulary 14, 3 positions.
constexpr Header small{8, 10, 2, 4, 2, 14, 3};
// 14*8 + 2*8 + 2*64 + 2*32 + 2*32 + 2*64 + 2*8 + 3*2*80 + 8 + 3*2.
constexpr std::int64_t small_numbers = 1022;

struct Place {
  WeightRole role;
  std::int64_t layer;
  const char* name;
  std::int64_t first, rows, columns;
};

TEST(Llama2c, PlacesOfTheWeights) {
  const std::string file = counting_file(small, small_numbers);
  const auto content = parse_llama2c(bytes_of(file), "f");
  ASSERT_TRUE(content) << content.error().message;
  const ModelConfig& config = content->config;
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.hidden, 8);
  EXPECT_EQ(config.ffn, 10);
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.query_heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 2);
  EXPECT_EQ(config.vocabulary, 14);
  EXPECT_EQ(config.max_positions, 3);
  EXPECT_TRUE(config.tied_embedding);
  EXPECT_TRUE(config.rope_interleaved);
  EXPECT_EQ(config.rope_base, 10000);
  EXPECT_EQ(config.norm_epsilon, 1e-5);
  EXPECT_EQ(config.activation, "silu");
  EXPECT_EQ(config.has_window, std::vector<bool>(2, false));

  const test::TemporaryFolder folder;
  const std::string path = folder.file("model.bin");
  test::write_file(path, file);
  const auto model = load_checkpoint(path);
  ASSERT_TRUE(model) << model.error().message;
  // Worked out by hand from the order in the file.
  const Place places[] = {
      {WeightRole::embedding, -1, "token_embedding_table", 0, 14, 8},
      {WeightRole::attention_norm, 0, "rms_att_weight[0]", 112, 1, 8},
      {WeightRole::attention_norm, 1, "rms_att_weight[1]", 120, 1, 8},
      {WeightRole::q, 0, "wq[0]", 128, 8, 8},
      {WeightRole::q, 1, "wq[1]", 192, 8, 8},
      {WeightRole::k, 0, "wk[0]", 256, 4, 8},
      {WeightRole::k, 1, "wk[1]", 288, 4, 8},
      {WeightRole::v, 0, "wv[0]", 320, 4, 8},
      {WeightRole::v, 1, "wv[1]", 352, 4, 8},
      {WeightRole::o, 0, "wo[0]", 384, 8, 8},
      {WeightRole::o, 1, "wo[1]", 448, 8, 8},
      {WeightRole::mlp_norm, 0, "rms_ffn_weight[0]", 512, 1, 8},
      {WeightRole::mlp_norm, 1, "rms_ffn_weight[1]", 520, 1, 8},
      {WeightRole::gate, 0, "w1[0]", 528, 10, 8},
      {WeightRole::gate, 1, "w1[1]", 608, 10, 8},
      {WeightRole::down, 0, "w2[0]", 688, 8, 10},
      {WeightRole::down, 1, "w2[1]", 768, 8, 10},
      {WeightRole::up, 0, "w3[0]", 848, 10, 8},
      {WeightRole::up, 1, "w3[1]", 928, 10, 8},
      {WeightRole::final_norm, -1, "rms_final_weight", 1008, 1, 8},
  };
  EXPECT_EQ(model->weights().size(), std::size(places));
  for (const Place& place : places) {
    SCOPED_TRACE(place.name);
    const Weight* weight = model->find(place.role, place.layer);
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->name, place.name);
    EXPECT_EQ(weight->rows(), place.rows);
    EXPECT_EQ(weight->columns(), place.columns);
    const auto values = model->read(*weight);
    ASSERT_TRUE(values);
    ASSERT_EQ(values->size(), static_cast<std::size_t>(place.rows * place.columns));
    EXPECT_EQ(values->front(), static_cast<float>(place.first));
    EXPECT_EQ(values->back(), static_cast<float>(place.first + place.rows * place.columns - 1));
  }
  EXPECT_EQ(model->find(WeightRole::output), model->find(WeightRole::embedding));
}

TEST(Llama2c, UntiedOutputMatrixStandsAtTheEnd) {
  Header header = small;
  header[5] = -14;
  const std::string file = counting_file(header, small_numbers + 14 * 8);
  const test::TemporaryFolder folder;
  const std::string path = folder.file("model.bin");
  test::write_file(path, file);
  const auto model = load_llama2c(path);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->config().tied_embedding);
  EXPECT_EQ(model->config().vocabulary, 14);
  const Weight* output = model->find(WeightRole::output);
  ASSERT_NE(output, nullptr);
  EXPECT_EQ(output->name, "wcls");
  EXPECT_EQ(model->read(*output)->front(), 1022.0F);
  EXPECT_EQ(model->read(*output)->back(), 1133.0F);
}

void expect_refused(const std::string& file, std::string_view words) {
  const auto content = parse_llama2c(bytes_of(file), "stories.bin");
  ASSERT_FALSE(content) << words;
  EXPECT_EQ(content.error().kind, ErrorKind::file);
  test::expect_one_line(content.error());
  EXPECT_TRUE(content.error().message.starts_with("stories.bin: ")) << content.error().message;
  EXPECT_NE(content.error().message.find(words), std::string::npos) << content.error().message;
}

TEST(Llama2c, SizesOfTheFile) {
  const std::string file = counting_file(small, small_numbers);
  ASSERT_EQ(file.size(), 28U + 4 * 1022);
  expect_refused(file.substr(0, file.size() - 1), "has 4115 bytes; accepted: 4116, as its header");
  expect_refused(file + "x", "has 4117 bytes; accepted: 4116");
  expect_refused(file.substr(0, 28), "has 28 bytes; accepted: 4116");
  expect_refused(file.substr(0, 27), "has 27 bytes; accepted: a llama2.c model");
  expect_refused("", "has 0 bytes; accepted: a llama2.c model");
}

TEST(Llama2c, HeadersThatCannotBe) {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const char* const names[] = {"dim",        "hidden_dim", "n_layers", "n_heads",
                               "n_kv_heads", "vocab_size", "seq_len"};
  for (std::size_t field = 0; field < small.size(); ++field) {
    for (const std::int32_t value : {0, -1, least, most, (1 << 20) + 1}) {
      if (field == 5 && value == -1) continue;
      Header header = small;
      header[field] = value;
      expect_refused(counting_file(header, small_numbers),
                     names[field] + (" is " + std::to_string(value)));
    }
  }
  const auto says = [](std::size_t field, std::int32_t value, const char* words) {
    Header header = small;
    header[field] = value;
    expect_refused(counting_file(header, small_numbers), words);
  };
  says(0, 10, "dim is 10 for 4 heads; accepted: an even multiple");
  says(0, 12, "dim is 12 for 4 heads; accepted: an even multiple");
  says(0, 4 * 1026, "dim is 4104 for 4 heads");
  says(4, 3, "n_kv_heads is 3; accepted: divisors of 4");
  says(0, 0x616B3432, "is version 10 of llama2.c's formats; accepted: the one without a version");
  // All at their limits: the size of the file that they mean is refused, not computed wrongly.
  const Header largest{1 << 20, 1 << 20, 4096, 1024, 1024, -(1 << 20), 1 << 20};
  // 28 + 4 * (2 * 2^40 + (2 * 4096 + 1) * 2^20 + 4096 * 7 * 2^40 + 2^20 * 2^10).
  expect_refused(counting_file(largest, 3), "accepted: 126109624318296092, as its header says");
}

/// The model that llama2.c's documentation runs, from the folder that KVSIM_SHARED names.
TEST(Llama2c, Stories260K) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const std::string path = std::string(shared) + "/data/stories260K/stories260K.bin";
  const auto model = load_checkpoint(path);
  ASSERT_TRUE(model) << model.error().message;
  const ModelConfig& config = model->config();
  EXPECT_EQ(config.hidden, 64);
  EXPECT_EQ(config.ffn, 172);
  EXPECT_EQ(config.layers, 5);
  EXPECT_EQ(config.query_heads, 8);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocabulary, 512);
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_TRUE(config.tied_embedding);
  EXPECT_TRUE(config.rope_interleaved);
  // coreutils: sha256sum stories260K.bin.
  EXPECT_EQ(model->identity(), "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696");

  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string file = content.str();
  const auto number = [&](std::size_t index) {
    float value = 0;
    std::memcpy(&value, file.data() + 28 + 4 * index, 4);
    return value;
  };
  // Places by the arithmetic of the header: 512*64 of the embedding, 5*64 of norms, then wq.
  const std::size_t wq = 512 * 64 + 5 * 64;
  const std::size_t wk = wq + 5 * 64 * 64;
  const std::size_t w1 = wk + 2 * 5 * 32 * 64 + 5 * 64 * 64 + 5 * 64;
  const std::size_t w3 = w1 + 2 * 5 * 172 * 64;
  const auto element = [&](WeightRole role, std::int64_t layer, std::int64_t row,
                           std::size_t column) {
    const Weight* weight = model->find(role, layer);
    std::vector<float> values(static_cast<std::size_t>(weight->columns()));
    EXPECT_TRUE(model->read_rows(*weight, row, values));
    return values[column];
  };
  EXPECT_EQ(element(WeightRole::embedding, -1, 403, 5), number(403 * 64 + 5));
  EXPECT_EQ(element(WeightRole::q, 3, 17, 60), number(wq + (3 * 64 + 17) * 64 + 60));
  EXPECT_EQ(element(WeightRole::k, 4, 31, 63), number(wk + (4 * 32 + 31) * 64 + 63));
  EXPECT_EQ(element(WeightRole::up, 2, 171, 1), number(w3 + (2 * 172 + 171) * 64 + 1));
  EXPECT_EQ(element(WeightRole::final_norm, -1, 0, 63), number(w3 + 5 * 172 * 64 + 63));
  for (const Weight& weight : model->weights()) {
    const auto values = model->read(weight);
    EXPECT_TRUE(values) << values.error().message;
  }
}

}  // namespace
}  // namespace kvsim
