// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint.h"
#include "softfloat/result.h"

namespace kvsim {

/// What a llama2.c model file holds: a header of seven int32, then float32 weights without names.
struct Llama2cContent {
  ModelConfig config;           ///< model_type "llama", rope_interleaved
  std::vector<Weight> weights;  ///< named as in llama2.c, "wq[0]"; bytes lead into the file
};

/// Reads the format that llama2.c's run.c reads (export.py --version 0): dim, hidden_dim, n_layers,
/// n_heads, n_kv_heads, vocab_size (negative: the output matrix stands at the end of the file
/// instead of being the embedding), seq_len. What the header does not say is fixed there: RMS norm
/// with 1e-5, RoPE base 10000 on neighbouring pairs, SiLU. Errors (ErrorKind::file, one line,
/// beginning with `source`): a size out of range, or a file that is not exactly as long as its
/// header says.
[[nodiscard]] Result<Llama2cContent> parse_llama2c(std::span<const std::byte> file,
                                                   std::string_view source);

/// Opens a llama2.c model. Errors as parse_llama2c, and those of opening a file.
[[nodiscard]] Result<Checkpoint> load_llama2c(const std::string& path);

}  // namespace kvsim
