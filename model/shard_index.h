// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// What the reader of model.safetensors.index.json accepts; it bounds the memory.
struct ShardIndexLimits {
  static constexpr std::size_t bytes = std::size_t{1} << 24;  ///< of the whole text
  static constexpr std::size_t files = 1024;
  static constexpr std::size_t file_name_bytes = 255;
};

/// Where each tensor of a sharded checkpoint stands.
struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::size_t file = 0;  ///< index into `files`
  };
  std::vector<std::string> files;  ///< names in the folder, sorted, each once; at least one
  std::vector<Entry> entries;      ///< sorted by tensor, each once; at least one
};

/// Reads the text of a model.safetensors.index.json: an object whose "weight_map" gives the file of
/// each tensor; other members are ignored. A file must be a plain name that ends in ".safetensors",
/// so that nothing outside the folder is opened. Errors (ErrorKind::file, one line, beginning with
/// `source`) name the tensor, the value and what is accepted.
[[nodiscard]] Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view source);

}  // namespace kvsim
