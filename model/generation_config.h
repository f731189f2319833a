// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// What a generation_config.json says about where generation begins and ends. Its sampling defaults
/// are left out: the sampler of a run is named by the user.
struct GenerationConfig {
  std::vector<std::int64_t> eos;  ///< each ends the text; empty where the file is silent
  std::optional<std::int64_t> bos;
};

/// Reads eos_token_id, a token id or an array of them, and bos_token_id. Errors (ErrorKind::file,
/// one line, beginning with `source`) name the field.
[[nodiscard]] Result<GenerationConfig> parse_generation_config(std::string_view text,
                                                               std::string_view source);
/// Reads a file of at most 1 MiB. Errors as parse_generation_config, and those of opening a file.
[[nodiscard]] Result<GenerationConfig> load_generation_config(const std::string& path);

}  // namespace kvsim
