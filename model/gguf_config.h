// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/dtype.h"
#include "model/gguf_metadata.h"
#include "model/gguf_model.h"
#include "model/gguf_tensors.h"
#include "softfloat/result.h"

namespace kvsim {

/// The two configuration files of a Hugging Face folder, as text.
struct GgufConfigTexts {
  std::string config;
  std::string generation;
};

/// Translates the keys of a GGUF file. A number of type float32 becomes the shortest decimal that
/// gives it back, which is what the model's own config.json says. Errors as of read_gguf_model.
[[nodiscard]] Result<GgufConfigTexts> gguf_config(const GgufMetadata& metadata,
                                                  std::span<const GgufTensor> tensors,
                                                  const GgufArchitecture& architecture, Dtype dtype,
                                                  std::string_view source);

}  // namespace kvsim
