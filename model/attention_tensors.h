// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "model/safetensors.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// The codes of a tensor where they stand, decoded on demand, so that no second copy is held.
class CodeView {
 public:
  /// Row-major little-endian codes of a format whose width is 8, 16, 32 or 64 bits.
  CodeView(softfloat::Format format, std::span<const std::byte> bytes)
      : bytes_(bytes), format_(format), width_(static_cast<std::size_t>(format.width()) / 8) {}

  /// The format of every code.
  [[nodiscard]] const softfloat::Format& format() const { return format_; }
  /// The number of codes.
  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(bytes_.size() / width_);
  }
  /// The code with that index, 0 <= index < size().
  [[nodiscard]] softfloat::Bits operator[](std::int64_t index) const {
    const std::size_t first = static_cast<std::size_t>(index) * width_;
    softfloat::Bits bits = 0;
    for (std::size_t byte = width_; byte > 0; --byte) {
      bits = bits << 8 | std::to_integer<softfloat::Bits>(bytes_[first + byte - 1]);
    }
    return bits;
  }
  /// Codes first, first + 1, ... into `out`, which must end within the tensor.
  void copy(std::int64_t first, std::span<softfloat::Bits> out) const;

 private:
  std::span<const std::byte> bytes_;
  softfloat::Format format_;
  std::size_t width_;
};

/// The sizes of one attention layer; all at least 1.
struct AttentionSizes {
  std::int64_t query_heads = 0;  ///< a multiple of kv_heads
  std::int64_t kv_heads = 0;
  std::int64_t query_len = 0;  ///< at most kv_len
  std::int64_t kv_len = 0;
  std::int64_t head_dim = 0;

  friend bool operator==(const AttentionSizes&, const AttentionSizes&) = default;
};

/// The inputs of attention from a file. Row-major: q [query_heads, query_len, head_dim], k and v
/// [kv_heads, kv_len, head_dim], all in one format. Holds the file open; views stay valid on move.
class AttentionTensors {
 public:
  /// Takes q, k and v out of a file. Errors (ErrorKind::usage) for a missing tensor, a rank that is
  /// not 3, a size of 0, shapes that do not fit each other, and dtypes that differ or are none of
  /// F64, F32, F16, BF16, F8_E5M2, F8_E4M3, F8_E5M2FNUZ and F8_E4M3FNUZ.
  [[nodiscard]] static Result<AttentionTensors> from(SafetensorsFile file);

  [[nodiscard]] const SafetensorsFile& file() const { return file_; }
  [[nodiscard]] const AttentionSizes& sizes() const { return sizes_; }
  /// The element type of all three, as the file has it.
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  /// The same as a softfloat format.
  [[nodiscard]] const softfloat::Format& format() const { return q_.format(); }
  [[nodiscard]] const CodeView& q() const { return q_; }
  [[nodiscard]] const CodeView& k() const { return k_; }
  [[nodiscard]] const CodeView& v() const { return v_; }

 private:
  AttentionTensors(SafetensorsFile file, AttentionSizes sizes, Dtype dtype, CodeView q, CodeView k,
                   CodeView v);

  SafetensorsFile file_;
  AttentionSizes sizes_;
  Dtype dtype_;
  CodeView q_;
  CodeView k_;
  CodeView v_;
};

/// Opens a file and takes q, k and v out of it. Errors as of SafetensorsFile::open
/// (ErrorKind::file) and AttentionTensors::from (ErrorKind::usage).
[[nodiscard]] Result<AttentionTensors> load_attention(const std::string& path);

}  // namespace kvsim
