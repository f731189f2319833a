// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/dtype.h"
#include "model/gguf_metadata.h"
#include "model/gguf_tensors.h"
#include "model/weight_rows.h"
#include "softfloat/result.h"

namespace kvsim {

/// A value of general.architecture, and how its files differ from Hugging Face's of the same model.
struct GgufArchitecture {
  std::string_view name;         ///< "llama"
  std::string_view model_type;   ///< of config.json
  std::string_view class_name;   ///< of transformers
  std::string_view tokenizer;    ///< class of a SentencePiece vocabulary in transformers
  bool permuted = false;         ///< rows of q and k stand as neighbours turn under RoPE
  bool gemma = false;            ///< norm weights hold 1 + weight; activation is GELU
  std::int64_t pattern = 0;      ///< every pattern-th layer sees everything; 0: no layer differs
  std::int64_t wide_layers = 0;  ///< with so many layers scores are divided by √(hidden ÷ heads)
  std::string_view source;
};

/// Every architecture that can be imported.
[[nodiscard]] std::span<const GgufArchitecture> gguf_architectures();

/// What makes a weight of Hugging Face's file from the GGUF's tensor.
enum class GgufChange : std::uint8_t {
  none,
  unpermute,  ///< rows of each head: even ones first, then odd ones
  minus_one,  ///< weight − 1, rounded to binary32
};

/// One weight of the model and the tensor that it comes from.
struct GgufWeight {
  ExpectedWeight weight;  ///< role, name and shape in Hugging Face's file
  std::string tensor;     ///< name in the GGUF file
  GgufChange change = GgufChange::none;
};

/// A model in a GGUF file, translated.
struct GgufModel {
  const GgufArchitecture* architecture = nullptr;
  ModelConfig config;               ///< what config_json says
  std::string config_json;          ///< config.json, fields of Hugging Face
  std::string generation_config;    ///< generation_config.json: bos and eos
  std::vector<GgufWeight> weights;  ///< in the order in which they are stored
};

/// Translates the head of a GGUF file. `dtype` (BF16 or F32) is what config.json will name. Errors
/// (ErrorKind::file, one line that begins with `source`): another architecture, with those that are
/// accepted; a key of the architecture that is missing or not known, because leaving it out could
/// change arithmetic in silence; a RoPE scaling of another kind; a tensor that is missing, has
/// another shape or is no part of the model.
[[nodiscard]] Result<GgufModel> read_gguf_model(const GgufMetadata& metadata,
                                                std::span<const GgufTensor> tensors, Dtype dtype,
                                                std::string_view source);

/// The rows of one head as Hugging Face's rotate-half RoPE wants them, in place:
/// [head_dim][columns], row j · head_dim ÷ 2 + i from row 2i + j.
void unpermute_head(std::span<float> rows, std::int64_t columns);

}  // namespace kvsim
