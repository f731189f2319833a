// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Small Hugging Face folders, put together by hand: names and shapes stand here a second time, and
// the files are written without the library's writer.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "tests/model/test_file.h"

namespace kvsim::test {

struct TestTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype = "BF16";
  std::string file = "model.safetensors";
  std::string bytes = {};  ///< empty: test_value of each element
};

/// A whole number from -125 to 125, which every weight format holds.
inline float test_value(std::string_view name, std::int64_t index) {
  std::int64_t sum = 3 * index;
  for (const char character : name) sum += character;
  return static_cast<float>(sum % 251 - 125);
}

inline std::string code_bytes(std::uint64_t code, std::size_t width) {
  return eight_bytes(code).substr(0, width);
}

inline std::string value_bytes(float value, std::string_view dtype) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (dtype == "BF16") return code_bytes(bits >> 16, 2);
  if (dtype == "F16") {
    return code_bytes(softfloat::convert(softfloat::binary16, softfloat::binary32, bits, {}).bits,
                      2);
  }
  return code_bytes(bits, dtype == "F64" ? 8 : 4);
}

/// The tensors of one file as the bytes of a safetensors file.
inline std::string shard(const std::vector<TestTensor>& tensors, std::string_view file) {
  std::string header = "{";
  std::string data;
  for (const TestTensor& tensor : tensors) {
    if (tensor.file != file) continue;
    const std::size_t begin = data.size();
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    if (tensor.bytes.empty()) {
      for (std::int64_t i = 0; i < count; ++i) {
        data += value_bytes(test_value(tensor.name, i), tensor.dtype);
      }
    } else {
      data += tensor.bytes;
    }
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", tensor.name, tensor.dtype,
                          fmt::join(tensor.shape, ","), begin, data.size());
  }
  return safetensors(header + "}", data);
}

/// config.json with sizes that differ from each other, so that none can stand for another one:
/// hidden 8, ffn 10, 4 query heads and 2 K/V heads of 6, vocabulary 14, 2 layers.
inline std::string small_config(std::string_view type, std::string_view more = "") {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 10,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "vocab_size": 14{}}})",
      type, more);
}

/// The tensors of every family's layers, without biases and norms of single heads.
inline std::vector<TestTensor> small_tensors(bool gemma) {
  std::vector<TestTensor> tensors = {{"model.embed_tokens.weight", {14, 8}},
                                     {"model.norm.weight", {8}}};
  if (!gemma) tensors.push_back({"lm_head.weight", {14, 8}});
  for (const int layer : {0, 1}) {
    const auto add = [&](std::string_view name, std::vector<std::int64_t> shape) {
      tensors.push_back({fmt::format("model.layers.{}.{}", layer, name), std::move(shape)});
    };
    add("input_layernorm.weight", {8});
    add("self_attn.q_proj.weight", {24, 8});
    add("self_attn.k_proj.weight", {12, 8});
    add("self_attn.v_proj.weight", {12, 8});
    add("self_attn.o_proj.weight", {8, 24});
    add("post_attention_layernorm.weight", {8});
    add("mlp.gate_proj.weight", {10, 8});
    add("mlp.up_proj.weight", {10, 8});
    add("mlp.down_proj.weight", {8, 10});
    if (!gemma) continue;
    add("pre_feedforward_layernorm.weight", {8});
    add("post_feedforward_layernorm.weight", {8});
  }
  return tensors;
}

/// The same with every number zero, which is quicker to write.
inline std::vector<TestTensor> zeros(std::vector<TestTensor> tensors) {
  for (TestTensor& tensor : tensors) {
    std::int64_t count = 2;
    for (const std::int64_t size : tensor.shape) count *= size;
    tensor.bytes.assign(static_cast<std::size_t>(count), '\0');
  }
  return tensors;
}

/// Adds a tensor to both layers.
inline void add_to_layers(std::vector<TestTensor>& tensors, std::string_view name,
                          const std::vector<std::int64_t>& shape) {
  for (const int layer : {0, 1}) {
    tensors.push_back({fmt::format("model.layers.{}.{}", layer, name), shape});
  }
}

/// Writes config.json and one file for every name in `tensors`; an index where there are several.
inline void write_model(const TemporaryFolder& folder, std::string_view config,
                        const std::vector<TestTensor>& tensors) {
  std::filesystem::remove(folder.file("config.json"));
  write_file(folder.file("config.json"), config);
  std::string map;
  std::vector<std::string> files;
  for (const TestTensor& tensor : tensors) {
    map += fmt::format(R"({}"{}":"{}")", map.empty() ? "" : ",", tensor.name, tensor.file);
    if (std::ranges::find(files, tensor.file) == files.end()) files.push_back(tensor.file);
  }
  for (const std::string& file : files) {
    // Some file systems wait for the disk where a file is written over.
    std::filesystem::remove(folder.file(file));
    write_file(folder.file(file), shard(tensors, file));
  }
  if (files.size() == 1) return;
  write_file(folder.file("model.safetensors.index.json"),
             fmt::format(R"({{"metadata":{{"total_size":1.5}},"weight_map":{{{}}}}})", map));
}

}  // namespace kvsim::test
