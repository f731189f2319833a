// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "model/checkpoint.h"
#include "softfloat/result.h"

namespace kvsim {

/// Opens a folder as Hugging Face's classes write it: config.json, generation_config.json where it
/// exists (its eos and bos tokens go before those of config.json), and model.safetensors or,
/// without it, the files that model.safetensors.index.json names. Errors (ErrorKind::file) are one
/// line that names the file, the tensor, its value and what is accepted:
/// - those of load_config, parse_generation_config, parse_shard_index and MappedFile;
/// - a tensor that is missing, of another shape than config.json says, of another dtype than BF16,
///   F16 and F32, or in another file than the index says;
/// - tensors that no row of weight_rows.h names, all in one line, as they would be left out;
/// - an output matrix that differs from the embedding where config.json says that they are one.
[[nodiscard]] Result<Checkpoint> load_folder(const std::string& path);

}  // namespace kvsim
