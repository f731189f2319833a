// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// Margins between the two largest logits, token by token, as a file has them.
struct MarginList {
  std::string model;               ///< the file's "model", may be empty
  std::string text;                ///< the file's "text", may be empty
  std::vector<double> margins;     ///< in logits: finite, at least 0
  std::vector<double> top_logits;  ///< the largest logit of each token; may be empty
};

/// Reads margins. Accepted are a JSON object whose "prompts" is a list of prompts, each a list of
/// tokens [largest logit, margin]; a JSON list of margins; and plain text with one number after the
/// other, separated by blanks, commas or line ends. Errors (ErrorKind::file, one line that begins
/// with `source`): text of another form, a margin that is negative or not finite, none at all.
[[nodiscard]] Result<MarginList> parse_margins(std::string_view text, std::string_view source);

/// Reads a file of at most 256 MiB. Errors as parse_margins, and those of opening a file.
[[nodiscard]] Result<MarginList> load_margins(const std::string& path);

}  // namespace kvsim
