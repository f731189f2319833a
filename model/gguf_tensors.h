// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_metadata.h"
#include "softfloat/result.h"

namespace kvsim {

/// How the elements of a tensor are stored: blocks of so many elements in so many bytes.
struct GgufEncoding {
  std::uint32_t code = 0;  ///< the number in the file
  std::string_view name;   ///< "Q4_1"
  std::int64_t elements = 1;
  std::int64_t bytes = 4;
};

/// Every encoding that can be read. Source: GGML_QUANT_SIZES of gguf 0.19.0 (constants.py), which a
/// test compares with it.
[[nodiscard]] std::span<const GgufEncoding> gguf_encodings();

/// One tensor as the file announces it. The views lead into the bytes that were parsed.
struct GgufTensor {
  std::string_view name;
  std::vector<std::int64_t> shape;  ///< as in Hugging Face's files: [outputs, inputs]
  std::string_view encoding;        ///< "Q4_1"
  std::span<const std::byte> data;  ///< as stored
};

/// The tensors of a GGUF file, in its order. Errors (ErrorKind::file, one line that begins with
/// `source`): an encoding that is not known, more than four sizes, rows that are no whole number of
/// blocks, two tensors of one name, and data that would lie beyond the end of the file.
[[nodiscard]] Result<std::vector<GgufTensor>> read_gguf_tensors(std::span<const std::byte> bytes,
                                                                const GgufMetadata& metadata,
                                                                std::string_view source);

}  // namespace kvsim
