// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "softfloat/formats.h"

#include <array>
#include <string>
#include <vector>

#include "softfloat/suggest.h"

namespace kvsim::softfloat {
namespace {

using Names = std::string_view;

// Lower case. "float8_e4m3" without a suffix is left out on purpose: ml_dtypes uses that name for
// another format (with infinities, maximum 240), while other projects mean the OCP one.
constexpr auto binary16_names =
    std::to_array<Names>({"fp16", "float16", "f16", "half", "e5m10", "float16_t", "_float16",
                          "__fp16", "__half", "cuda_r_16f", "<f2", "f2", "ieee_half"});
constexpr auto bfloat16_names =
    std::to_array<Names>({"bf16", "e8m7", "bfloat", "bfloat16_t", "__bf16", "nv_bfloat16",
                          "__nv_bfloat16", "__hip_bfloat16", "cuda_r_16bf", "brain_float"});
constexpr auto tf32_names = std::to_array<Names>(
    {"tensorfloat32", "tensorfloat-32", "tensor_float_32", "tfloat32", "e8m10", "fp19", "nv_tf32"});
constexpr auto binary32_names =
    std::to_array<Names>({"fp32", "float32", "f32", "float", "single", "e8m23", "float32_t",
                          "_float32", "cuda_r_32f", "<f4", "ieee_single"});
constexpr auto binary64_names =
    std::to_array<Names>({"fp64", "float64", "f64", "double", "e11m52", "float64_t", "_float64",
                          "cuda_r_64f", "<f8", "ieee_double"});
constexpr auto e4m3_names = std::to_array<Names>(
    {"fp8_e4m3", "float8_e4m3fn", "f8_e4m3", "e4m3fn", "fp8_e4m3fn", "f8e4m3fn", "f8_e4m3fn",
     "f8e4m3", "fp8e4m3", "float8e4m3fn", "float8e4nv", "fp8e4nv", "nv_fp8_e4m3", "__nv_fp8_e4m3",
     "__hip_fp8_e4m3", "cuda_r_8f_e4m3", "mxfp8_e4m3", "ocp_e4m3"});
constexpr auto e5m2_names = std::to_array<Names>(
    {"fp8_e5m2", "float8_e5m2", "f8_e5m2", "f8e5m2", "fp8e5m2", "float8e5m2", "float8e5", "fp8e5",
     "nv_fp8_e5m2", "__nv_fp8_e5m2", "__hip_fp8_e5m2", "cuda_r_8f_e5m2", "mxfp8_e5m2", "ocp_e5m2"});
constexpr auto e4m3fnuz_names = std::to_array<Names>(
    {"fp8_e4m3fnuz", "float8_e4m3fnuz", "f8_e4m3fnuz", "f8e4m3fnuz", "float8e4m3fnuz", "float8e4b8",
     "fp8e4b8", "fp8_e4m3_fnuz", "__hip_fp8_e4m3_fnuz"});
constexpr auto e5m2fnuz_names = std::to_array<Names>(
    {"fp8_e5m2fnuz", "float8_e5m2fnuz", "f8_e5m2fnuz", "f8e5m2fnuz", "float8e5m2fnuz",
     "float8e5b16", "fp8e5b16", "fp8_e5m2_fnuz", "__hip_fp8_e5m2_fnuz"});
constexpr auto e3m2_names = std::to_array<Names>(
    {"fp6_e3m2", "float6_e3m2fn", "f6_e3m2", "e3m2fn", "f6e3m2fn", "f6_e3m2fn", "f6e3m2",
     "nv_fp6_e3m2", "__nv_fp6_e3m2", "__hip_fp6_e3m2", "cuda_r_6f_e3m2", "mxfp6_e3m2"});
constexpr auto e2m3_names = std::to_array<Names>(
    {"fp6_e2m3", "float6_e2m3fn", "f6_e2m3", "e2m3fn", "f6e2m3fn", "f6_e2m3fn", "f6e2m3",
     "nv_fp6_e2m3", "__nv_fp6_e2m3", "__hip_fp6_e2m3", "cuda_r_6f_e2m3", "mxfp6_e2m3"});
constexpr auto e2m1_names =
    std::to_array<Names>({"fp4", "fp4_e2m1", "float4_e2m1fn", "f4", "f4_e2m1", "e2m1fn", "f4e2m1fn",
                          "f4_e2m1fn", "f4e2m1", "float4e2m1", "float4_e2m1fn_x2", "mxfp4", "nvfp4",
                          "nv_fp4_e2m1", "__nv_fp4_e2m1", "__hip_fp4_e2m1", "cuda_r_4f_e2m1"});
constexpr auto e8m0_names = std::to_array<Names>(
    {"ue8m0", "float8_e8m0fnu", "f8_e8m0", "e8m0fnu", "fp8_e8m0", "f8e8m0fnu", "f8_e8m0fnu",
     "f8e8m0", "float8e8m0", "nv_fp8_e8m0", "__nv_fp8_e8m0", "cuda_r_8f_ue8m0"});
constexpr auto e8m13_names = std::to_array<Names>({"fp22", "fp22_e8m13", "f22", "float22_e8m13"});

constexpr std::string_view ieee_754 = "IEEE 754-2019, table 3.5 (2019-07)";
constexpr std::string_view ocp_fp8 =
    "OCP 8-bit Floating Point Specification (OFP8) 1.0, section 5 (2023-06)";
constexpr std::string_view ocp_mx =
    "OCP Microscaling Formats (MX) Specification 1.0, section 5 (2023-09)";
constexpr std::string_view fnuz_paper =
    "Noune et al., 8-bit Numerical Formats for Deep Neural Networks, arXiv:2206.02915 (2022-06)";

constexpr auto table = std::to_array<NamedFormat>({
    {"binary16", binary16, binary16_names, "IEEE 754 half precision (1, 5, 10)", ieee_754,
     Evidence::documented},
    {"bfloat16", bfloat16, bfloat16_names, "binary32 cut to its upper 16 bits (1, 8, 7)",
     "Intel, BFLOAT16 Hardware Numerics Definition, revision 1.0 (2018-11)", Evidence::documented},
    {"tf32", tf32, tf32_names, "TensorFloat-32 input of matrix units (1, 8, 10)",
     "NVIDIA A100 Tensor Core GPU Architecture whitepaper 1.0 (2020-05)", Evidence::documented},
    {"binary32", binary32, binary32_names, "IEEE 754 single precision (1, 8, 23)", ieee_754,
     Evidence::documented},
    {"binary64", binary64, binary64_names, "IEEE 754 double precision (1, 11, 52)", ieee_754,
     Evidence::documented},
    {"e4m3", e4m3, e4m3_names, "OCP FP8 (1, 4, 3): no infinity, one NaN per sign", ocp_fp8,
     Evidence::documented},
    {"e5m2", e5m2, e5m2_names, "OCP FP8 (1, 5, 2): infinity and NaN as in IEEE 754", ocp_fp8,
     Evidence::documented},
    {"e4m3fnuz", e4m3fnuz, e4m3fnuz_names,
     "FP8 (1, 4, 3), bias 8: no infinity, no negative zero, 0x80 is NaN", fnuz_paper,
     Evidence::documented},
    {"e5m2fnuz", e5m2fnuz, e5m2fnuz_names,
     "FP8 (1, 5, 2), bias 16: no infinity, no negative zero, 0x80 is NaN", fnuz_paper,
     Evidence::documented},
    {"e3m2", e3m2, e3m2_names, "OCP FP6 (1, 3, 2): every code is a number", ocp_mx,
     Evidence::documented},
    {"e2m3", e2m3, e2m3_names, "OCP FP6 (1, 2, 3): every code is a number", ocp_mx,
     Evidence::documented},
    {"e2m1", e2m1, e2m1_names, "OCP FP4 (1, 2, 1), element of MXFP4 and NVFP4", ocp_mx,
     Evidence::documented},
    {"e8m0", e8m0, e8m0_names, "scale of an MX block: unsigned power of two, 0xff is NaN", ocp_mx,
     Evidence::documented},
    // That the accumulator keeps 13 fraction bits is measured; that it has binary32's exponents,
    // subnormals and infinity follows from its being stored in a binary32 register.
    {"e8m13", e8m13, e8m13_names, "FP22 accumulator of FP8 matrix units (1, 8, 13)",
     "Accurate Models of NVIDIA Tensor Cores, arXiv:2512.07004 (2025-12), and its hardware vectors",
     Evidence::measured},
});

// What people write before a type's name: each removed once.
constexpr auto prefixes =
    std::to_array<std::string_view>({"torch.", "numpy.", "np.", "jax.numpy.", "jnp.", "ml_dtypes.",
                                     "triton.language.", "tl.", "tf.", "mx.", "std::"});

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Longer than any name, so that hostile input is not even copied.
constexpr std::size_t longest_name = 64;

}  // namespace

std::span<const NamedFormat> formats() { return table; }

const NamedFormat* find_format(std::string_view name_or_alias) {
  if (name_or_alias.size() > longest_name) return nullptr;
  const std::string lower = lower_case(name_or_alias);
  std::string_view wanted = lower;
  for (const std::string_view prefix : prefixes) {
    if (wanted.starts_with(prefix)) {
      wanted.remove_prefix(prefix.size());
      break;
    }
  }
  for (const NamedFormat& row : table) {
    if (row.name == wanted) return &row;
    for (const std::string_view alias : row.aliases) {
      if (alias == wanted) return &row;
    }
  }
  return nullptr;
}

std::string_view nearest_format_name(std::string_view mistyped) {
  std::vector<std::string_view> names;
  for (const NamedFormat& row : table) {
    names.push_back(row.name);
    names.insert(names.end(), row.aliases.begin(), row.aliases.end());
  }
  return nearest(mistyped, names);
}

std::string_view format_name(const Format& format) {
  for (const NamedFormat& row : table) {
    if (row.format == format) return row.name;
  }
  return "unnamed";
}

}  // namespace kvsim::softfloat
