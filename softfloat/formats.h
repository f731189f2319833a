// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string_view>

#include "softfloat/evidence.h"
#include "softfloat/format.h"

namespace kvsim::softfloat {

/// IEEE 754-2019 binary16, "half".
inline constexpr Format binary16{5, 11, 15};
/// Brain float: binary32 cut to 16 bits.
inline constexpr Format bfloat16{8, 8, 127};
/// TensorFloat-32: 19 bits (1, 8, 10), right-aligned in Bits. In a GPU register the same number
/// stands in the upper 19 bits of a binary32.
inline constexpr Format tf32{8, 11, 127};
/// IEEE 754-2019 binary32, "single".
inline constexpr Format binary32{8, 24, 127};
/// IEEE 754-2019 binary64, "double".
inline constexpr Format binary64{11, 53, 1023};
/// OCP 8-bit E4M3: no infinity, S.1111.111 is NaN, maximum 448.
inline constexpr Format e4m3{4, 4, 7, Specials::nan_only};
/// OCP 8-bit E5M2: binary16 cut to 8 bits.
inline constexpr Format e5m2{5, 3, 15};
/// 8-bit E4M3 with bias 8, no infinity, no −0; 0x80 is the only NaN.
inline constexpr Format e4m3fnuz{4, 4, 8, Specials::nan_is_negative_zero};
/// 8-bit E5M2 with bias 16, no infinity, no −0; 0x80 is the only NaN.
inline constexpr Format e5m2fnuz{5, 3, 16, Specials::nan_is_negative_zero};
/// OCP 6-bit E3M2: every code is a number.
inline constexpr Format e3m2{3, 3, 3, Specials::none};
/// OCP 6-bit E2M3: every code is a number.
inline constexpr Format e2m3{2, 4, 1, Specials::none};
/// OCP 4-bit E2M1: every code is a number.
inline constexpr Format e2m1{2, 2, 1, Specials::none};
/// OCP 8-bit E8M0, the scale of an MX block: an unsigned power of two; 0xff is NaN.
inline constexpr Format e8m0{8, 1, 127, Specials::exponent_only, false};
/// The 22-bit accumulator (1, 8, 13) of the FP8 tensor cores of NVIDIA Ada and Hopper,
/// right-aligned in Bits.
inline constexpr Format e8m13{8, 14, 127};

/// One row of the table of formats.
struct NamedFormat {
  std::string_view name;  ///< canonical, as printed
  Format format;
  std::span<const std::string_view> aliases;  ///< other accepted names, in lower case
  std::string_view description;               ///< one line without a full stop
  std::string_view source;                    ///< document and date
  Evidence evidence;                          ///< how well `source` supports the row
};

/// Every named format, in the order in which they are listed to the user.
[[nodiscard]] std::span<const NamedFormat> formats();

/// The row with this name or alias, in any mix of upper and lower case; nullptr if there is none.
/// Accepted are the spellings of IEEE 754, C, CUDA, NumPy, ml_dtypes, JAX, PyTorch ("torch.float16"
/// and "float16"), Triton, safetensors and GGUF.
[[nodiscard]] const NamedFormat* find_format(std::string_view name_or_alias);

/// The name or alias of a format that is closest to a mistyped one; empty where none is near.
[[nodiscard]] std::string_view nearest_format_name(std::string_view mistyped);

/// The canonical name of a format of the table; "unnamed" for any other.
[[nodiscard]] std::string_view format_name(const Format& format);

}  // namespace kvsim::softfloat
