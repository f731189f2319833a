// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/model/model_folder.h"

namespace kvsim {
namespace {

using test::TemporaryFolder;
using test::TestTensor;

Result<Checkpoint> load(const TemporaryFolder& folder) {
  return load_folder(folder.path().string());
}

void expect_error(const Result<Checkpoint>& model, std::string_view words) {
  ASSERT_FALSE(model) << words;
  EXPECT_EQ(model.error().kind, ErrorKind::file);
  test::expect_one_line(model.error());
  EXPECT_NE(model.error().message.find(words), std::string::npos) << model.error().message;
}

std::vector<TestTensor> sharded() {
  std::vector<TestTensor> tensors = test::small_tensors(false);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].file = fmt::format("model-0000{}-of-00003.safetensors", i % 3 + 1);
  }
  return tensors;
}

TEST(CheckpointFolder, Shards) {
  const TemporaryFolder folder;
  test::write_model(folder, test::small_config("llama"), sharded());
  const auto model = load(folder);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->files().size(), 3U);
  for (const Weight& weight : model->weights()) {
    const auto values = model->read(weight);
    ASSERT_TRUE(values);
    EXPECT_EQ(values->front(), test::test_value(weight.name, 0)) << weight.name;
    EXPECT_EQ(values->back(),
              test::test_value(weight.name, static_cast<std::int64_t>(values->size()) - 1));
  }
  // coreutils, in that folder: sha256sum *.safetensors | sha256sum.
  EXPECT_EQ(model->identity(), "8b642003c26b1857ca517e21a6c85e8898325dae751ba5a62d6604c8899f7de6");
  // One file goes before an index, as in transformers; its digest is that of sha256sum.
  test::write_model(folder, test::small_config("llama"), test::small_tensors(false));
  const auto single = load(folder);
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_EQ(single->files().size(), 1U);
  EXPECT_EQ(single->identity(), "efefc5a287421e846e5af9d556395ef8e209e5da74085862733369202f7dadc8");
}

TEST(CheckpointFolder, ShardsThatDoNotFitTheIndex) {
  const TemporaryFolder folder;
  const std::string config = test::small_config("llama");
  const std::string second = folder.file("model-00002-of-00003.safetensors");
  test::write_model(folder, config, sharded());
  std::filesystem::remove(second);
  expect_error(load(folder), "model-00002-of-00003.safetensors: is missing; accepted: every file");
  test::write_file(second, "");
  expect_error(load(folder), "model-00002-of-00003.safetensors: is empty");
  std::filesystem::remove(second);
  std::filesystem::create_symlink("nowhere", second);
  expect_error(load(folder), "model-00002-of-00003.safetensors: cannot open");
  std::filesystem::remove(second);

  std::vector<TestTensor> tensors = sharded();
  test::write_file(second, test::shard({tensors[1]}, tensors[1].file));
  expect_error(load(folder),
               "model-00002-of-00003.safetensors: tensor \"model.layers.0.mlp.up_proj.weight\" "
               "is missing; accepted: every tensor that model.safetensors.index.json places");
  // The second file holds one of the first, too.
  tensors.push_back(tensors[0]);
  tensors.back().file = tensors[1].file;
  test::write_file(second, test::shard(tensors, tensors[1].file));
  expect_error(
      load(folder),
      "model-00002-of-00003.safetensors: tensor \"model.embed_tokens.weight\" stands here, "
      "model.safetensors.index.json says model-00001-of-00003.safetensors");
  tensors.back().name = "another";
  test::write_file(second, test::shard(tensors, tensors[1].file));
  expect_error(load(folder),
               "tensor \"another\" stands here, model.safetensors.index.json says "
               "nothing of it");
}

TEST(CheckpointFolder, TensorsThatNoOneReads) {
  const TemporaryFolder folder;
  std::vector<TestTensor> tensors = test::small_tensors(false);
  test::add_to_layers(tensors, "self_attn.rotary_emb.inv_freq", {3});
  test::write_model(folder, test::small_config("llama"), tensors);
  ASSERT_TRUE(load(folder));
  test::add_to_layers(tensors, "self_attn.q_proj.weight_scale", {3});
  test::write_model(folder, test::small_config("llama"), tensors);
  expect_error(load(folder),
               "tensor \"model.layers.0.self_attn.q_proj.weight_scale\", "
               "\"model.layers.1.self_attn.q_proj.weight_scale\": no part of a llama model");
  for (const char* name : {"a", "b", "c"}) test::add_to_layers(tensors, name, {1});
  test::write_model(folder, test::small_config("llama"), tensors);
  expect_error(load(folder), "\"model.layers.0.self_attn.q_proj.weight_scale\", 4 more: no part");
  // Biases that config.json does not speak of.
  tensors = test::small_tensors(false);
  test::add_to_layers(tensors, "self_attn.q_proj.bias", {24});
  test::write_model(folder, test::small_config("mistral"), tensors);
  expect_error(load(folder),
               "q_proj.bias\", \"model.layers.1.self_attn.q_proj.bias\": no part of a mistral");
}

TEST(CheckpointFolder, TiedOutputMatrix) {
  const TemporaryFolder folder;
  const std::string tied = test::small_config("llama", R"(, "tie_word_embeddings": true)");
  std::vector<TestTensor> tensors = test::small_tensors(false);
  ASSERT_EQ(tensors[2].name, "lm_head.weight");
  test::write_model(folder, tied, tensors);
  expect_error(load(folder),
               "tensor \"lm_head.weight\" differs from \"model.embed_tokens.weight\"");
  tensors[0].bytes = std::string(14 * 8 * 2, '\1');
  tensors[2].bytes = tensors[0].bytes;
  test::write_model(folder, tied, tensors);
  const auto equal = load(folder);
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_EQ(equal->find(WeightRole::output), equal->find(WeightRole::embedding));
  tensors[2].dtype = "F16";  // equal bytes, other numbers
  test::write_model(folder, tied, tensors);
  expect_error(load(folder), "tensor \"lm_head.weight\" differs");
  tensors.erase(tensors.begin() + 2);
  test::write_model(folder, tied, tensors);
  const auto absent = load(folder);
  ASSERT_TRUE(absent) << absent.error().message;
  EXPECT_EQ(absent->find(WeightRole::output), absent->find(WeightRole::embedding));
}

TEST(CheckpointFolder, NamesOfOtherClasses) {
  struct Case {
    const char* model;
    const char* image;
  };
  for (const Case& test : {Case{"", nullptr}, Case{"language_model.model.", "vision_tower.x"},
                           Case{"model.language_model.", "model.multi_modal_projector.x"}}) {
    SCOPED_TRACE(test.model);
    const TemporaryFolder folder;
    std::vector<TestTensor> tensors = test::small_tensors(true);
    test::add_to_layers(tensors, "self_attn.q_norm.weight", {6});
    test::add_to_layers(tensors, "self_attn.k_norm.weight", {6});
    for (TestTensor& tensor : tensors) tensor.name.replace(0, 6, test.model);
    if (test.image != nullptr) tensors.push_back({test.image, {2}, "I32"});
    const std::string config = fmt::format(R"({{"model_type": "gemma3", "text_config": {}}})",
                                           test::small_config("gemma3_text"));
    test::write_model(folder, config, tensors);
    const auto model = load(folder);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->find(WeightRole::gate, 1)->name,
              std::string(test.model) + "layers.1.mlp.gate_proj.weight");
  }
}

TEST(CheckpointFolder, GenerationConfig) {
  const TemporaryFolder folder;
  test::write_model(folder,
                    test::small_config("llama", R"(, "eos_token_id": 7, "bos_token_id": 1)"),
                    test::small_tensors(false));
  EXPECT_EQ(load(folder)->config().eos, std::vector<std::int64_t>({7}));
  EXPECT_EQ(load(folder)->config().bos, 1);
  const std::string path = folder.file("generation_config.json");
  test::write_file(path, R"({"eos_token_id": [3, 5], "temperature": 0.6, "do_sample": true})");
  EXPECT_EQ(load(folder)->config().eos, std::vector<std::int64_t>({3, 5}));
  EXPECT_EQ(load(folder)->config().bos, 1);
  test::write_file(path, R"({"bos_token_id": 2})");
  EXPECT_EQ(load(folder)->config().eos, std::vector<std::int64_t>({7}));
  EXPECT_EQ(load(folder)->config().bos, 2);
  test::write_file(path, R"({"eos_token_id": ["a"]})");
  expect_error(load(folder), "generation_config.json: field \"eos_token_id[0]\" is the text \"a\"");
  test::write_file(path, R"({"eos_token_id": 14})");
  expect_error(load(folder), "eos_token_id is 14; accepted: token ids below 14, the vocab_size");
  test::write_file(path, R"({"bos_token_id": 14})");
  expect_error(load(folder), "bos_token_id is 14; accepted: token ids below 14, the vocab_size");
  test::write_file(path, R"({"eos_token_id": 13, "bos_token_id": 13})");
  EXPECT_TRUE(load(folder));
  test::write_file(path, "[");
  expect_error(load(folder), "generation_config.json: ");
}

TEST(CheckpointFolder, WhatIsNoModel) {
  const TemporaryFolder folder;
  expect_error(load(folder), "config.json: cannot open");
  test::write_file(folder.file("config.json"), test::small_config("mixtral"));
  expect_error(load(folder), "\"mixtral\"; accepted: llama, mistral");
  test::write_file(folder.file("config.json"), test::small_config("llama"));
  expect_error(load(folder), "holds neither model.safetensors nor model.safetensors.index.json");
  const std::string index = folder.file("model.safetensors.index.json");
  test::write_file(index, R"({"weight_map": {"a": "../model.safetensors"}})");
  expect_error(load(folder),
               "index.json: weight_map: tensor \"a\" stands in "
               "\"../model.safetensors\"; accepted: the name of a file");
  std::filesystem::create_directory(folder.file("model.safetensors"));
  expect_error(load(folder), "model.safetensors: is a directory");
  const std::string gguf = folder.file("model.gguf");
  test::write_file(gguf, "GGUF and more");
  expect_error(load_checkpoint(gguf), "model.gguf: is a GGUF file");
  expect_error(load_checkpoint(folder.file("nothing")), "nothing: cannot open");
  expect_error(load_checkpoint(""), "names no file");
}

}  // namespace
}  // namespace kvsim
