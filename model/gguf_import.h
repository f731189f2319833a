// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/folder_writer.h"
#include "model/gguf_model.h"
#include "model/mapped_file.h"
#include "softfloat/result.h"

namespace kvsim {

/// A GGUF file whose head has been read and translated.
class GgufFile {
 public:
  /// `dtype` is BF16 or F32, the element type of the model to write. Errors as of
  /// GgufMetadata::parse, read_gguf_tensors, read_gguf_model and those of opening a file.
  [[nodiscard]] static Result<GgufFile> open(const std::string& path, Dtype dtype);

  [[nodiscard]] const GgufModel& model() const { return model_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  /// Names of the tensors, in the order in which import_gguf() reads them.
  [[nodiscard]] std::vector<std::string> tensor_names() const;
  /// How many elements they have together.
  [[nodiscard]] std::int64_t elements() const;
  /// "Q4_1 210, F32 61, Q8_0 1": how many tensors have which encoding.
  [[nodiscard]] std::string encodings() const;

 private:
  std::string path_;
  MappedFile mapping_;
  GgufModel model_;
  std::vector<GgufTensor> tensors_;
  Dtype dtype_ = Dtype::bf16;
};

/// Fills `out` with the next elements of the tensors of tensor_names(), dequantised to binary32,
/// each tensor row-major and one after the other.
using DequantisedSource = std::function<Result<bool>(std::span<float> out)>;

/// Writes the model as a Hugging Face folder into `folder`, which the caller finishes: config.json,
/// generation_config.json, the tokenizer's files and model.safetensors, whose weights are rounded
/// to nearest, ties to even. `progress` is told the finished share. Errors (ErrorKind::file): a
/// weight that is NaN or infinite or becomes so, and those of `source` and of writing.
[[nodiscard]] Result<bool> import_gguf(const GgufFile& file, const DequantisedSource& source,
                                       const std::function<void(double)>& progress,
                                       FolderWriter& folder);

/// The bfloat16 nearest to a finite number, ties to even; beyond the largest it is an infinity. A
/// test proves it equal to softfloat's conversion.
[[nodiscard]] std::uint16_t to_bfloat16(float value);

}  // namespace kvsim
