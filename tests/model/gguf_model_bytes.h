// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/gguf_bytes.h"

namespace kvsim::test {

struct GgufTensorBytes {
  std::string name;
  std::vector<std::uint64_t> shape;  ///< rows first, as in Hugging Face's files
  std::vector<float> values;
};

/// A GGUF file with F32 tensors, made by hand from the format's description (gguf.md of ggml).
class GgufModelBytes {
 public:
  explicit GgufModelBytes(std::string architecture) : architecture_(std::move(architecture)) {}

  void set_architecture(std::string name) { architecture_ = std::move(name); }
  void add(GgufTensorBytes tensor) { tensors_.push_back(std::move(tensor)); }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const GgufTensorBytes& one) { return one.name == name; });
  }
  void add_whole(const std::string& key, std::uint32_t value) {
    entries_.push_back(gguf_entry(key, GgufType::uint32, four_bytes(value)));
  }
  void add_float(const std::string& key, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    entries_.push_back(gguf_entry(key, GgufType::float32, four_bytes(bits)));
  }
  void add_text(const std::string& key, const std::string& value) {
    entries_.push_back(gguf_entry(key, GgufType::text, gguf_text(value)));
  }
  void add_bpe_tokenizer() {
    add_text("tokenizer.ggml.model", "gpt2");
    add_text("tokenizer.ggml.pre", "smollm");
    entries_.push_back(
        gguf_texts("tokenizer.ggml.tokens", {"a", "<|start|>", "<|end|>", "b", "ab", "\u0120"}));
    entries_.push_back(gguf_int32s("tokenizer.ggml.token_type", {1, 3, 3, 1, 1, 1}));
    entries_.push_back(gguf_texts("tokenizer.ggml.merges", {"a b"}));
  }
  /// Bytes that are missing at the end.
  void cut(std::size_t bytes) { cut_ = bytes; }

  [[nodiscard]] std::vector<float> values(const std::string& name) const {
    for (const GgufTensorBytes& one : tensors_) {
      if (one.name == name) return one.values;
    }
    return {};
  }
  void set_value(const std::string& name, std::size_t index, float value) {
    for (GgufTensorBytes& one : tensors_) {
      if (one.name == name) one.values[index] = value;
    }
  }

  [[nodiscard]] std::string bytes() const {
    std::string out =
        "GGUF" + four_bytes(3) + eight_bytes(tensors_.size()) + eight_bytes(entries_.size() + 1);
    out += gguf_entry("general.architecture", GgufType::text, gguf_text(architecture_));
    for (const std::string& entry : entries_) out += entry;
    std::uint64_t offset = 0;
    for (const GgufTensorBytes& one : tensors_) {
      out += gguf_text(one.name) + four_bytes(static_cast<std::uint32_t>(one.shape.size()));
      for (std::size_t i = one.shape.size(); i > 0; --i) out += eight_bytes(one.shape[i - 1]);
      out += four_bytes(0) + eight_bytes(offset);
      offset += (one.values.size() * 4 + 31) / 32 * 32;
    }
    for (const GgufTensorBytes& one : tensors_) {
      out.resize((out.size() + 31) / 32 * 32, '\0');
      for (const float value : one.values) out += four_bytes(std::bit_cast<std::uint32_t>(value));
    }
    return out.substr(0, out.size() - cut_);
  }

 private:
  std::string architecture_;
  std::vector<std::string> entries_;
  std::vector<GgufTensorBytes> tensors_;
  std::size_t cut_ = 0;
};

/// A model of a few hundred weights, every one another number.
inline GgufModelBytes small_gguf(const std::string& architecture, float rope_base = 100000) {
  GgufModelBytes model(architecture);
  const bool gemma = architecture.starts_with("gemma");
  const std::uint32_t layers = architecture == "gemma3" ? 7 : 2;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  model.add_whole(key("block_count"), layers);
  model.add_whole(key("context_length"), 64);
  model.add_whole(key("embedding_length"), 8);
  model.add_whole(key("feed_forward_length"), 12);
  model.add_whole(key("attention.head_count"), 2);
  model.add_whole(key("attention.head_count_kv"), 1);
  model.add_whole(key("attention.key_length"), 4);
  model.add_whole(key("attention.value_length"), 4);
  model.add_float(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  if (!gemma) model.add_float(key("rope.freq_base"), rope_base);
  if (gemma) model.add_whole(key("attention.sliding_window"), 16);
  if (architecture == "gemma2") {
    model.add_float(key("attn_logit_softcapping"), 50);
    model.add_float(key("final_logit_softcapping"), 30);
  }
  model.add_whole("tokenizer.ggml.bos_token_id", 1);
  model.add_whole("tokenizer.ggml.eos_token_id", 2);
  float next = 0;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t size = 1;
    for (const std::uint64_t each : shape) size *= each;
    std::vector<float> values(size);
    for (float& value : values) value = next += 0.0625F;
    model.add({name, std::move(shape), std::move(values)});
  };
  add("token_embd.weight", {6, 8});
  add("output_norm.weight", {8});
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    add(block + "attn_norm.weight", {8});
    add(block + "attn_q.weight", {8, 8});
    add(block + "attn_k.weight", {4, 8});
    add(block + "attn_v.weight", {4, 8});
    add(block + "attn_output.weight", {8, 8});
    if (architecture == "qwen2") {
      add(block + "attn_q.bias", {8});
      add(block + "attn_k.bias", {4});
      add(block + "attn_v.bias", {4});
    }
    if (architecture == "gemma3" || architecture == "qwen3") {
      add(block + "attn_q_norm.weight", {4});
      add(block + "attn_k_norm.weight", {4});
    }
    if (gemma) add(block + "post_attention_norm.weight", {8});
    add(block + "ffn_norm.weight", {8});
    add(block + "ffn_gate.weight", {12, 8});
    add(block + "ffn_up.weight", {12, 8});
    add(block + "ffn_down.weight", {8, 12});
    if (gemma) add(block + "post_ffw_norm.weight", {8});
  }
  return model;
}

}  // namespace kvsim::test
