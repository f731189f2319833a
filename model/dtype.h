// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "softfloat/format.h"

namespace kvsim {

/// The element types of the safetensors format, version 0.7.
enum class Dtype : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/// One row of the table of element types.
struct DtypeInfo {
  Dtype dtype;
  std::string_view name;                    ///< as the file spells it, in capitals
  int bits;                                 ///< width of one element; 4 and 6 are packed
  std::optional<softfloat::Format> format;  ///< for real floating-point types
};

/// Every element type, in the order of Dtype.
[[nodiscard]] std::span<const DtypeInfo> dtypes();

/// The row of one type.
[[nodiscard]] const DtypeInfo& dtype_info(Dtype dtype);

/// The row with this name, in the file's spelling; nullptr if there is none.
[[nodiscard]] const DtypeInfo* find_dtype(std::string_view name);

/// "BOOL, F4, ...": the names that a file may use, for error messages.
[[nodiscard]] std::string dtype_names();

}  // namespace kvsim
