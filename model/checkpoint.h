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
#include "model/mapped_file.h"
#include "model/weight_rows.h"
#include "softfloat/result.h"

namespace kvsim {

/// One weight of a model, where it stands in a mapped file: row-major, little-endian, of any
/// alignment.
struct Weight {
  WeightRole role = WeightRole::embedding;
  std::int64_t layer = -1;          ///< -1: of the whole model
  std::string name;                 ///< as the file has it
  std::size_t file = 0;             ///< index into Checkpoint::files()
  Dtype dtype = Dtype::f32;         ///< BF16, F16 or F32
  std::vector<std::int64_t> shape;  ///< one or two sizes, each at least 1
  std::span<const std::byte> bytes;

  /// 1 for a vector.
  [[nodiscard]] std::int64_t rows() const { return shape.size() == 2 ? shape[0] : 1; }
  [[nodiscard]] std::int64_t columns() const { return shape.back(); }
};

/// A file of a checkpoint, held open.
struct CheckpointFile {
  std::string name;  ///< without the folder
  std::string path;
  MappedFile mapping;
};

/// A model from disk: its configuration, and every weight that it must have, checked by name, dtype
/// and shape. Files stay mapped; a weight is read only when it is asked for. Movable; views stay
/// valid. Immutable: threads may share it.
class Checkpoint {
 public:
  /// `weights` are those of the whole model, then layer by layer; their bytes lead into `files`.
  Checkpoint(ModelConfig config, std::vector<CheckpointFile> files, std::vector<Weight> weights);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] std::span<const CheckpointFile> files() const { return files_; }
  [[nodiscard]] std::span<const Weight> weights() const { return weights_; }
  /// The weights of layer i, or with -1 those of the whole model; none beyond the last layer.
  [[nodiscard]] std::span<const Weight> layer(std::int64_t i) const;
  /// The weight with that role, of layer i or with -1 of the whole model; nullptr where the model
  /// has none. The output matrix of a tied model is its embedding.
  [[nodiscard]] const Weight* find(WeightRole role, std::int64_t i = -1) const;

  /// Rows first, first + 1, … as numbers, exact, into `out`, which holds whole rows. Errors: rows
  /// beyond the weight's (usage), and a value that is NaN or infinite, with its place (file).
  [[nodiscard]] Result<bool> read_rows(const Weight& weight, std::int64_t first,
                                       std::span<float> out) const;
  /// All of it, [rows][columns].
  [[nodiscard]] Result<std::vector<float>> read(const Weight& weight) const;

  /// SHA-256 that names these weights, 64 hexadecimal digits: of one file what `sha256sum` prints;
  /// of several the digest of the lines "<digest>  <name>", sorted by name, which in a folder with
  /// no other safetensors files is `sha256sum *.safetensors | sha256sum`. Reads every file.
  [[nodiscard]] std::string identity() const;

 private:
  ModelConfig config_;
  std::vector<CheckpointFile> files_;
  std::vector<Weight> weights_;
  std::vector<std::size_t> layer_begin_;  ///< of each layer in weights_, and the end
};

/// Opens a Hugging Face folder (load_folder) or a llama2.c model (load_llama2c), by what stands at
/// the path. Errors as of those two; a GGUF file is refused by name.
[[nodiscard]] Result<Checkpoint> load_checkpoint(const std::string& path);

}  // namespace kvsim
