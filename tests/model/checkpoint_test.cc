// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/model/model_folder.h"

namespace kvsim {
namespace {

using test::TemporaryFolder;
using test::TestTensor;

struct Family {
  const char* type;
  const char* more;
  std::vector<TestTensor> tensors;
};

std::vector<Family> families() {
  std::vector<Family> list = {
      {"llama", "", test::small_tensors(false)},
      {"llama", R"(, "attention_bias": true, "mlp_bias": true)", test::small_tensors(false)},
      {"mistral", "", test::small_tensors(false)},
      {"gemma2", "", test::small_tensors(true)},
      {"gemma3_text", "", test::small_tensors(true)},
      {"qwen2", "", test::small_tensors(false)},
      {"qwen3", "", test::small_tensors(false)},
  };
  for (Family& family : list) {
    const std::string_view type = family.type;
    const bool all_biases = *family.more != '\0';
    if (type == "qwen2" || all_biases) {
      test::add_to_layers(family.tensors, "self_attn.q_proj.bias", {24});
      test::add_to_layers(family.tensors, "self_attn.k_proj.bias", {12});
      test::add_to_layers(family.tensors, "self_attn.v_proj.bias", {12});
    }
    if (all_biases) {
      test::add_to_layers(family.tensors, "self_attn.o_proj.bias", {8});
      test::add_to_layers(family.tensors, "mlp.gate_proj.bias", {10});
      test::add_to_layers(family.tensors, "mlp.up_proj.bias", {10});
      test::add_to_layers(family.tensors, "mlp.down_proj.bias", {8});
    }
    if (type == "gemma3_text" || type == "qwen3") {
      test::add_to_layers(family.tensors, "self_attn.q_norm.weight", {6});
      test::add_to_layers(family.tensors, "self_attn.k_norm.weight", {6});
    }
  }
  return list;
}

void expect_error(const Result<Checkpoint>& model, std::string_view words) {
  ASSERT_FALSE(model) << words;
  EXPECT_EQ(model.error().kind, ErrorKind::file);
  test::expect_one_line(model.error());
  EXPECT_NE(model.error().message.find(words), std::string::npos) << model.error().message;
}

TEST(Checkpoint, EveryTensorOfEveryFamilyIsRead) {
  for (const Family& family : families()) {
    SCOPED_TRACE(std::string(family.type) + family.more);
    const TemporaryFolder folder;
    test::write_model(folder, test::small_config(family.type, family.more), family.tensors);
    const auto model = load_checkpoint(folder.path().string());
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->config().model_type, family.type);
    ASSERT_EQ(model->weights().size(), family.tensors.size());
    std::map<std::string, const TestTensor*> by_name;
    for (const TestTensor& tensor : family.tensors) by_name[tensor.name] = &tensor;
    for (const Weight& weight : model->weights()) {
      SCOPED_TRACE(weight.name);
      ASSERT_TRUE(by_name.contains(weight.name));
      EXPECT_EQ(weight.shape, by_name[weight.name]->shape);
      EXPECT_EQ(weight.dtype, Dtype::bf16);
      EXPECT_EQ(model->find(weight.role, weight.layer), &weight);
      const auto values = model->read(weight);
      ASSERT_TRUE(values) << values.error().message;
      for (std::size_t i = 0; i < values->size(); ++i) {
        ASSERT_EQ((*values)[i], test::test_value(weight.name, static_cast<std::int64_t>(i)));
      }
      by_name.erase(weight.name);
    }
    EXPECT_EQ(model->layer(-1).size() + model->layer(0).size() + model->layer(1).size(),
              family.tensors.size());
    EXPECT_TRUE(model->layer(2).empty());
    EXPECT_EQ(model->find(WeightRole::q, 2), nullptr);
    for (const Weight& weight : model->layer(1)) {
      EXPECT_TRUE(weight.name.starts_with("model.layers.1.")) << weight.name;
    }
  }
}

TEST(Checkpoint, RolesOfNames) {
  const auto name_of = [](const Result<Checkpoint>& model, WeightRole role, std::int64_t layer) {
    const Weight* weight = model->find(role, layer);
    return weight == nullptr ? "none" : weight->name;
  };
  const TemporaryFolder gemma_folder;
  test::write_model(gemma_folder, test::small_config("gemma2"), test::small_tensors(true));
  const auto gemma = load_checkpoint(gemma_folder.path().string());
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(name_of(gemma, WeightRole::post_attention_norm, 1),
            "model.layers.1.post_attention_layernorm.weight");
  EXPECT_EQ(name_of(gemma, WeightRole::mlp_norm, 1),
            "model.layers.1.pre_feedforward_layernorm.weight");
  EXPECT_EQ(name_of(gemma, WeightRole::post_mlp_norm, 0),
            "model.layers.0.post_feedforward_layernorm.weight");
  EXPECT_EQ(name_of(gemma, WeightRole::output, -1), "model.embed_tokens.weight");
  EXPECT_EQ(name_of(gemma, WeightRole::q_norm, 0), "none");

  const TemporaryFolder llama_folder;
  test::write_model(llama_folder, test::small_config("llama"), test::small_tensors(false));
  const auto llama = load_checkpoint(llama_folder.path().string());
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(name_of(llama, WeightRole::mlp_norm, 0),
            "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(name_of(llama, WeightRole::attention_norm, 0), "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(name_of(llama, WeightRole::output, -1), "lm_head.weight");
  EXPECT_EQ(name_of(llama, WeightRole::embedding, -1), "model.embed_tokens.weight");
  EXPECT_EQ(name_of(llama, WeightRole::final_norm, -1), "model.norm.weight");
  EXPECT_EQ(name_of(llama, WeightRole::gate, 1), "model.layers.1.mlp.gate_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::up, 1), "model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::down, 1), "model.layers.1.mlp.down_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::q, 1), "model.layers.1.self_attn.q_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::k, 1), "model.layers.1.self_attn.k_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::v, 1), "model.layers.1.self_attn.v_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::o, 1), "model.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(name_of(llama, WeightRole::q_bias, 1), "none");
}

TEST(Checkpoint, EveryTensorIsNeededInItsShape) {
  for (const Family& family : families()) {
    const std::string config = test::small_config(family.type, family.more);
    for (std::size_t i = 0; i < family.tensors.size(); ++i) {
      const std::string& name = family.tensors[i].name;
      SCOPED_TRACE(family.type + (" " + name));
      const TemporaryFolder folder;
      std::vector<TestTensor> tensors = test::zeros(family.tensors);
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
      test::write_model(folder, config, tensors);
      const auto missing = load_checkpoint(folder.path().string());
      expect_error(missing, fmt::format("model.safetensors: tensor \"{}\" [", name));
      EXPECT_NE(missing.error().message.find("is missing"), std::string::npos);
      tensors = family.tensors;
      tensors[i].shape.back() += 1;
      tensors = test::zeros(tensors);
      test::write_model(folder, config, tensors);
      expect_error(
          load_checkpoint(folder.path().string()),
          fmt::format("tensor \"{}\" has shape [{}]; accepted: [{}], which is [", name,
                      fmt::join(tensors[i].shape, ", "), fmt::join(family.tensors[i].shape, ", ")));
    }
  }
}

TEST(Checkpoint, DtypesMayDifferFromTensorToTensor) {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = test::small_tensors(false);
  tensors[0].dtype = "F16";
  tensors[1].dtype = "F32";
  test::write_model(folder, test::small_config("llama"), tensors);
  const auto model = load_checkpoint(folder.path().string());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->find(WeightRole::embedding)->dtype, Dtype::f16);
  EXPECT_EQ(model->find(WeightRole::final_norm)->dtype, Dtype::f32);
  for (const WeightRole role : {WeightRole::embedding, WeightRole::final_norm}) {
    const Weight* weight = model->find(role);
    const auto values = model->read(*weight);
    ASSERT_TRUE(values);
    for (std::size_t i = 0; i < values->size(); ++i) {
      ASSERT_EQ((*values)[i], test::test_value(weight->name, static_cast<std::int64_t>(i)));
    }
  }
  for (const char* dtype : {"F64", "I32"}) {
    tensors[0].dtype = dtype;
    test::write_model(folder, test::small_config("llama"), tensors);
    expect_error(load_checkpoint(folder.path().string()),
                 fmt::format("tensor \"model.embed_tokens.weight\" has dtype {}; accepted: BF16, "
                             "F16, F32",
                             dtype));
  }
}

TEST(Checkpoint, RowsOfATensor) {
  const TemporaryFolder folder;
  test::write_model(folder, test::small_config("llama"), test::small_tensors(false));
  const auto model = load_checkpoint(folder.path().string());
  ASSERT_TRUE(model) << model.error().message;
  const Weight& embedding = *model->find(WeightRole::embedding);
  std::vector<float> row(8);
  for (std::int64_t token = 0; token < 14; ++token) {
    ASSERT_TRUE(model->read_rows(embedding, token, row));
    for (std::int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(row[static_cast<std::size_t>(i)],
                test::test_value("model.embed_tokens.weight", 8 * token + i));
    }
  }
  for (const std::int64_t first : {-1, 14, 1000}) {
    const auto status = model->read_rows(embedding, first, row);
    ASSERT_FALSE(status) << first;
    EXPECT_EQ(status.error().kind, ErrorKind::usage);
    test::expect_one_line(status.error());
  }
  EXPECT_FALSE(model->read_rows(embedding, 0, std::span(row).first(7)));
  std::vector<float> too_many(14 * 8);
  EXPECT_TRUE(model->read_rows(embedding, 0, too_many));
  EXPECT_FALSE(model->read_rows(embedding, 1, too_many));
}

TEST(Checkpoint, WeightsMustBeFinite) {
  struct Case {
    const char* dtype;
    std::uint64_t code;
    const char* what;
  };
  for (const Case& test : {Case{"BF16", 0x7F80, "infinite"}, Case{"BF16", 0xFFC1, "NaN"},
                           Case{"F16", 0xFC00, "infinite"}, Case{"F16", 0x7C01, "NaN"},
                           Case{"F32", 0xFF800000, "infinite"}, Case{"F32", 0x7F800001, "NaN"}}) {
    SCOPED_TRACE(test.dtype);
    const TemporaryFolder folder;
    std::vector<TestTensor> tensors = test::small_tensors(false);
    TestTensor& bad = tensors[0];
    bad.dtype = test.dtype;
    const std::size_t width = bad.dtype == "F32" ? 4 : 2;
    for (int i = 0; i < 14 * 8; ++i) {
      bad.bytes +=
          i == 5 * 8 + 3 ? test::code_bytes(test.code, width) : test::value_bytes(1, test.dtype);
    }
    test::write_model(folder, test::small_config("llama"), tensors);
    const auto model = load_checkpoint(folder.path().string());
    ASSERT_TRUE(model) << model.error().message;
    const Weight& weight = *model->find(WeightRole::embedding);
    const auto values = model->read(weight);
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().kind, ErrorKind::file);
    test::expect_one_line(values.error());
    EXPECT_NE(values.error().message.find(fmt::format(
                  "model.safetensors: tensor \"model.embed_tokens.weight\" is {} at row 5, column "
                  "3; accepted: finite numbers",
                  test.what)),
              std::string::npos)
        << values.error().message;
    std::vector<float> rows(2 * 8);
    EXPECT_TRUE(model->read_rows(weight, 3, rows));
    const auto part = model->read_rows(weight, 4, rows);
    ASSERT_FALSE(part);
    EXPECT_NE(part.error().message.find("row 5, column 3"), std::string::npos);
  }
}

}  // namespace
}  // namespace kvsim
