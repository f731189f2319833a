// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "model/vocabulary.h"
#include "softfloat/result.h"

namespace kvsim {

/// Takes bos_token, eos_token and add_bos_token of a tokenizer_config.json over into the
/// vocabulary. A named token must be in it; add_bos_token counts only where there is a bos token.
/// Errors are one line that begins with `source`.
[[nodiscard]] Result<bool> apply_tokenizer_config(std::string_view text, std::string_view source,
                                                  Vocabulary& vocabulary);

}  // namespace kvsim
