// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "run/arm.h"
#include "softfloat/result.h"

namespace kvsim::fuzz {

/// A text at the end of which two arms of a model may choose different tokens.
struct ModelCase {
  std::string model;               ///< as it was given: a name or a path
  std::string model_sha256;        ///< 64 hexadecimal digits: which model it must be
  std::array<Arm, 2> arms;         ///< indices path_on and path_off; settings include `dispatch`
  std::int64_t prompt_tokens = 0;  ///< the first of `ids`; the others were generated
  std::vector<TokenId> ids;        ///< what both arms were fed
  double floor = 0;                ///< of a shrunk case: what its value stayed above; 0 otherwise

  friend bool operator==(const ModelCase&, const ModelCase&) = default;
};

inline constexpr std::int64_t most_model_tokens = std::int64_t{1} << 20;

/// Whether the text is a case of kind `model`, as far as its first lines tell.
[[nodiscard]] bool is_model_case(std::string_view text);

/// The text of a case, in lines: docs/fuzzing.md.
[[nodiscard]] std::string to_text(const ModelCase& model_case);

/// "model-DIGEST.case", from the text.
[[nodiscard]] std::string case_file_name(const ModelCase& model_case);

/// Reads a case. Errors (file) name the line, what stands there and what is accepted.
[[nodiscard]] Result<ModelCase> parse_model_case(std::string_view text);

}  // namespace kvsim::fuzz
