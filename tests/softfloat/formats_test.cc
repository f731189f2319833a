// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "softfloat/formats.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/exact.h"
#include "softfloat/host.h"
#include "softfloat/suggest.h"

namespace kvsim::softfloat {
namespace {

nlohmann::json golden() {
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/golden/formats.json");
  return nlohmann::json::parse(file).at("formats");
}

double number(std::string_view text) {
  auto style = std::chars_format::general;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    style = std::chars_format::hex;
  }
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, style);
  EXPECT_TRUE(end.ec == std::errc() && end.ptr == text.data() + text.size()) << text;
  return value;
}

Bits code(std::string_view text) {
  Bits value = 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return value;
}

TEST(Formats, EveryFormatIsListedOnceInGoldenOrder) {
  const auto rows = golden();
  ASSERT_EQ(formats().size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(formats()[i].name, rows[i].at("name").get<std::string>());
    EXPECT_EQ(format_name(formats()[i].format), formats()[i].name);
    EXPECT_FALSE(formats()[i].description.empty());
    EXPECT_FALSE(formats()[i].source.empty());
  }
  EXPECT_EQ(format_name(Format{5, 10, 15}), "unnamed");
}

TEST(Formats, DerivedConstantsAreThoseOfTheSpecifications) {
  for (const auto& row : golden()) {
    const auto name = row.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const NamedFormat* named = find_format(name);
    ASSERT_NE(named, nullptr);
    const Format& f = named->format;
    EXPECT_EQ(f.width(), row.at("width").get<int>());
    EXPECT_EQ(f.max_finite(), code(row.at("max_bits").get<std::string>()));
    EXPECT_EQ(to_double(f, f.max_finite()), number(row.at("max").get<std::string>()));
    const Bits smallest_normal = f.has_zero() ? Bits{1} << f.trailing_bits() : 0;
    EXPECT_EQ(to_double(f, smallest_normal), number(row.at("min_normal").get<std::string>()));
    if (!row.at("min_subnormal").is_null()) {
      EXPECT_EQ(to_double(f, 1), number(row.at("min_subnormal").get<std::string>()));
    }
    const Bits one = code(row.at("one").get<std::string>());
    EXPECT_EQ(to_double(f, one), 1.0);
    EXPECT_EQ(to_double(f, one + 1) - 1.0, number(row.at("epsilon").get<std::string>()));
    EXPECT_EQ(f.has_nan(), !row.at("nan_bits").is_null());
    if (f.has_nan()) {
      EXPECT_EQ(f.canonical_nan(), code(row.at("nan_bits").get<std::string>()));
    }
    // The exponents that the constants are made from, by a second route.
    EXPECT_EQ(unpack<uint128>(f, smallest_normal).exponent, f.emin());
    EXPECT_EQ(unpack<uint128>(f, f.max_finite()).exponent, f.emax());
  }
}

TEST(Formats, CodesThatAreNotNumbersAreCounted) {
  for (const auto& row : golden()) {
    if (row.at("width").get<int>() > 22) continue;
    const Format& f = find_format(row.at("name").get<std::string>())->format;
    std::map<Class, std::int64_t> count;
    for (Bits bits = 0; bits <= f.code_mask(); ++bits) ++count[unpack<std::uint64_t>(f, bits).kind];
    EXPECT_EQ(count[Class::nan], row.at("nan_codes").get<std::int64_t>()) << row;
    EXPECT_EQ(count[Class::infinity], row.at("infinity_codes").get<std::int64_t>()) << row;
    EXPECT_EQ(count[Class::zero], row.at("zero_codes").get<std::int64_t>()) << row;
  }
}

TEST(Formats, EveryHabitOfNamingIsAccepted) {
  const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> habits = {
      {"binary16",
       {"binary16", "fp16", "float16", "f16", "half", "F16", "torch.float16", "FLOAT16",
        "torch.half", "np.float16", "numpy.half", "jnp.float16", "jax.numpy.float16", "tl.float16",
        "std::float16_t", "_Float16", "__half", "CUDA_R_16F", "e5m10"}},
      {"bfloat16",
       {"bf16", "bfloat16", "BF16", "torch.bfloat16", "ml_dtypes.bfloat16", "__nv_bfloat16",
        "nv_bfloat16", "jnp.bfloat16", "CUDA_R_16BF", "e8m7"}},
      {"tf32", {"TF32", "tensorfloat32", "TensorFloat-32", "e8m10"}},
      {"binary32",
       {"fp32", "f32", "float32", "float", "F32", "single", "torch.float32", "torch.float",
        "np.float32", "np.single", "CUDA_R_32F"}},
      {"binary64",
       {"fp64", "f64", "float64", "double", "F64", "torch.float64", "torch.double", "np.double",
        "CUDA_R_64F"}},
      {"e4m3",
       {"fp8_e4m3", "e4m3", "float8_e4m3fn", "F8_E4M3", "torch.float8_e4m3fn", "E4M3FN", "f8E4M3FN",
        "FLOAT8E4M3FN", "tl.float8e4nv", "__nv_fp8_e4m3", "ml_dtypes.float8_e4m3fn",
        "CUDA_R_8F_E4M3"}},
      {"e5m2",
       {"fp8_e5m2", "e5m2", "float8_e5m2", "F8_E5M2", "torch.float8_e5m2", "f8E5M2", "FLOAT8E5M2",
        "tl.float8e5", "__nv_fp8_e5m2", "CUDA_R_8F_E5M2"}},
      {"e4m3fnuz",
       {"float8_e4m3fnuz", "torch.float8_e4m3fnuz", "F8_E4M3FNUZ", "f8E4M3FNUZ", "tl.float8e4b8",
        "__hip_fp8_e4m3_fnuz"}},
      {"e5m2fnuz",
       {"float8_e5m2fnuz", "torch.float8_e5m2fnuz", "F8_E5M2FNUZ", "f8E5M2FNUZ", "tl.float8e5b16",
        "__hip_fp8_e5m2_fnuz"}},
      {"e3m2", {"fp6_e3m2", "float6_e3m2fn", "F6_E3M2", "__nv_fp6_e3m2", "CUDA_R_6F_E3M2"}},
      {"e2m3", {"fp6_e2m3", "float6_e2m3fn", "F6_E2M3", "__nv_fp6_e2m3", "CUDA_R_6F_E2M3"}},
      {"e2m1",
       {"fp4", "fp4_e2m1", "float4_e2m1fn", "F4", "torch.float4_e2m1fn_x2", "mxfp4", "nvfp4",
        "__nv_fp4_e2m1", "CUDA_R_4F_E2M1"}},
      {"e8m0", {"ue8m0", "float8_e8m0fnu", "F8_E8M0", "torch.float8_e8m0fnu", "__nv_fp8_e8m0"}},
      {"e8m13", {"fp22", "FP22", "E8M13"}}};
  for (const auto& [name, spellings] : habits) {
    for (const std::string_view spelling : spellings) {
      const NamedFormat* found = find_format(spelling);
      ASSERT_NE(found, nullptr) << spelling;
      EXPECT_EQ(found->name, name) << spelling;
    }
  }
}

TEST(Formats, EachNameMeansOneFormat) {
  std::map<std::string, std::string> owner;
  for (const NamedFormat& row : formats()) {
    std::vector<std::string_view> names(row.aliases.begin(), row.aliases.end());
    names.push_back(row.name);
    for (const std::string_view name : names) {
      EXPECT_TRUE(owner.emplace(name, row.name).second) << name;
      EXPECT_EQ(find_format(name), &row) << name;
      for (const char c : name) EXPECT_FALSE(c >= 'A' && c <= 'Z') << name;
    }
  }
}

TEST(Formats, UnknownAndAmbiguousNamesAreRefused) {
  for (const std::string_view name :
       {"", " ", "fp15", "fp8", "torch.", "torch", "torch.torch.float16", "fp16 ", "float8_e4m3",
        "float8_e4m3b11fnuz", "bf8", "int8", "e4m3\n"}) {
    EXPECT_EQ(find_format(name), nullptr) << name;
  }
  EXPECT_EQ(find_format(std::string(1 << 20, 'f')), nullptr);
}

TEST(Formats, AMistypedNameSuggestsTheNearOne) {
  const auto meant = [](std::string_view name) {
    const NamedFormat* row = find_format(nearest_format_name(name));
    return row == nullptr ? std::string_view("none") : row->name;
  };
  EXPECT_EQ(meant("fp61"), "binary16");
  EXPECT_EQ(meant("flaot16"), "binary16");
  EXPECT_EQ(meant("bflot16"), "bfloat16");
  EXPECT_EQ(meant("FP8"), "e4m3");
  EXPECT_EQ(meant("float8_e4m3"), "e4m3");
  EXPECT_EQ(meant("e5m3"), "e4m3");
  EXPECT_EQ(meant("int8"), "none");
  EXPECT_EQ(meant("quadruple"), "none");
  EXPECT_EQ(meant(""), "none");
}

TEST(Suggest, CountsEditsAndExchanges) {
  const std::vector<std::string_view> words = {"sequential", "reverse", "pairwise", "halving"};
  EXPECT_EQ(nearest("sequental", words), "sequential");
  EXPECT_EQ(nearest("seqeuntial", words), "sequential");
  EXPECT_EQ(nearest("PAIRWISE", words), "pairwise");
  EXPECT_EQ(nearest("pari", words), "");
  EXPECT_EQ(nearest("rev", words), "reverse");
  EXPECT_EQ(nearest("r", words), "");
  EXPECT_EQ(nearest("havling", words), "halving");
  EXPECT_EQ(nearest(std::string(65, 'a'), words), "");
  EXPECT_EQ(nearest("x", std::vector<std::string_view>{"a", "b"}), "");
  EXPECT_EQ(nearest("", words), "");
}

}  // namespace
}  // namespace kvsim::softfloat
