// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exp_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/simd_level.h"
#include "sim/philox.h"
#include "tests/sim/exp_plain.h"

namespace kvsim {
namespace {

using oracle::infinity;
using oracle::plain_fa4;
using oracle::plain_libm_expf;
using oracle::plain_sleef_u10;
using oracle::plain_torch_exp_u20;
using oracle::plain_torch_fexp_u20;
using oracle::quiet_nan;
using oracle::rounded_exp;
using oracle::rounded_exp2;

float flushed_exp2(float x) {
  const float result = rounded_exp2(x);
  return result < 0x1p-126F ? 0.0F : result;
}

std::uint32_t code(float x) {
  return std::isnan(x) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(x);
}

// Arguments of all kinds: any code, the range of interest, close to zero, the ends.
std::vector<float> arguments(std::size_t count) {
  std::vector<float> result{
      0.0F,    -0.0F,   infinity,   -infinity,  quiet_nan, 88.72283F, 88.72284F, 88.8F,   -86.9F,
      -86.99F, -87.0F,  -87.33654F, -87.33655F, -87.4F,    -103.97F,  -103.98F,  -104.0F, -104.1F,
      100.0F,  100.1F,  127.0F,     128.0F,     -126.0F,   -126.5F,   -127.0F,   -127.5F, -149.0F,
      -149.5F, -150.0F, 0x1p-149F,  -0x1p-30F,  0x1p-25F,  -0x1p-24F, 3e38F,     -3e38F};
  // Those whose exponentials lie within 2^−25 of half a unit beside a boundary (see exp_test.cc).
  for (const std::uint32_t bits :
       {0x3ab13d4fU, 0xc16912cdU, 0xbb32cf64U, 0xc236bd8cU, 0xbbf0edf1U, 0xbed67f95U, 0xbae0e25cU,
        0x3b730a7dU, 0x3d1a274eU, 0xbecbb365U, 0x40315b33U, 0x42a28a1bU, 0x4001b249U, 0x4195bc36U,
        0x41b7ee9aU, 0x4288942bU})
    result.push_back(std::bit_cast<float>(bits));
  for (std::uint64_t i = 0; result.size() < count; ++i) {
    const std::uint64_t random = philox_bits(5, 1, i);
    if (i % 4 == 0) {
      result.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random)));
    } else {
      const float unit = static_cast<float>(random >> 40) * 0x1p-24F;
      result.push_back(i % 4 == 1 ? -30 * unit : -150 + 280 * unit);
    }
  }
  return result;
}

struct Case {
  ExpModel model;
  ExpBase base;
  float (*plain)(float);
};

constexpr auto cases = std::to_array<Case>({
    {ExpModel::correctly_rounded, ExpBase::e, rounded_exp},
    {ExpModel::correctly_rounded, ExpBase::two, rounded_exp2},
    {ExpModel::torch_exp_u20, ExpBase::e, plain_torch_exp_u20},
    {ExpModel::torch_fexp_u20, ExpBase::e, plain_torch_fexp_u20},
    {ExpModel::sleef_u10, ExpBase::e, plain_sleef_u10},
    {ExpModel::libm_expf, ExpBase::e, plain_libm_expf},
    {ExpModel::fa4_polynomial, ExpBase::two, plain_fa4},
    {ExpModel::cuda_expf, ExpBase::e, rounded_exp},
    {ExpModel::ex2_approx, ExpBase::two, flushed_exp2},
});

TEST(ExpModels, EqualPlainVersionsAtEveryLevel) {
  const std::vector<float> in = arguments(20'000);
  for (const Case& row : cases) {
    const ExpFunction function(row.model);
    std::vector<float> expected(in.size());
    std::transform(in.begin(), in.end(), expected.begin(), row.plain);
    for (const SimdLevel level : list_simd_levels()) {
      std::vector<float> out = in;  // in place
      if (row.base == ExpBase::e) {
        function.exp(out, out, level);
      } else {
        function.exp2(out, out, level);
      }
      for (std::size_t i = 0; i < in.size(); ++i) {
        ASSERT_EQ(code(out[i]), code(expected[i]))
            << to_string(row.model) << " of " << std::hexfloat << in[i] << " at "
            << simd_level_name(level);
      }
    }
    for (std::size_t i = 0; i < 100; ++i) {
      const float one = row.base == ExpBase::e ? function.exp(in[i]) : function.exp2(in[i]);
      ASSERT_EQ(code(one), code(expected[i])) << to_string(row.model) << " of " << in[i];
    }
  }
}

TEST(ExpModels, LengthsThatAreNoMultipleOfAVector) {
  const std::vector<float> in = arguments(40);
  for (const Case& row : cases) {
    if (row.base != ExpBase::e) continue;
    for (const SimdLevel level : list_simd_levels()) {
      for (std::size_t length = 0; length < in.size(); ++length) {
        std::vector<float> out(length + 1, 7.0F);
        ExpFunction(row.model).exp(std::span(in).first(length), std::span(out).first(length),
                                   level);
        for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(code(out[i]), code(row.plain(in[i])));
        ASSERT_EQ(out[length], 7.0F) << "written beyond the end";
      }
    }
  }
}

// What glibc 2.36 gave on a CPU with FMA, 16 times not the correctly rounded number.
TEST(ExpModels, ExpfOfTheCLibrary) {
  constexpr std::array<float, 2> known[] = {
      {0x1.631c6cp+5F, 0x1.072072p+64F},
      {-0x1.bec6p-1F, 0x1.abe3fcp-2F},
      {-0x1.3db0fp+2F, 0x1.c9cc94p-8F},
      {-0x1.95cce8p+3F, 0x1.a142b6p-19F},
      {0x1.a41b14p+5F, 0x1.b1b40cp+75F},
      {-0x1.420a68p+2F, 0x1.abb86ep-8F},
      {-0x1.b532f8p+3F, 0x1.38d3a2p-20F},
      {-0x1.4bb6f8p+2F, 0x1.6fb77p-8F},
      {0x1.e7df58p+4F, 0x1.fcb57cp+43F},
      {-0x1.6dcfb6p+3F, 0x1.6bf894p-17F},
      {-0x1.fe39bep+3F, 0x1.fee4bep-24F},
      {-0x1.9071ap+0F, 0x1.ac8a5ep-3F},
      {0x1.07df2ap+5F, 0x1.803974p+47F},
      {-0x1.9d9088p+3F, 0x1.475dep-19F},
      {-0x1.c67e64p+2F, 0x1.aff5acp-11F},
      {-0x1.44868p-1F, 0x1.0fa46cp-1F},
      {0x1.62e42ep+6F, 0x1.ffff08p+127F},
      {0x1.62e43p+6F, oracle::infinity},
      {-0x1.9fe366p+6F, 0x1p-149F},
      {-0x1.9fe36ap+6F, 0},
      {-0x1.5ep+6F, 0x1.b2cafp-127F},
      {0, 1},
      {0x1.79ca1p-67F, 1},
      {1, 0x1.5bf0a8p+1F},
  };
  const ExpFunction expf(ExpModel::libm_expf);
  int not_rounded = 0;
  for (const auto& [x, expected] : known) {
    EXPECT_EQ(expf.exp(x), expected) << std::hexfloat << x;
    not_rounded += expected != rounded_exp(x) ? 1 : 0;
  }
  EXPECT_EQ(not_rounded, 16);
}

// A base that is not the model's own: the argument times a float constant, rounded.
TEST(ExpModels, OtherBase) {
  const ExpFunction polynomial(ExpModel::fa4_polynomial);
  const ExpFunction sleef(ExpModel::sleef_u10);
  for (const float x : arguments(300)) {
    EXPECT_EQ(code(polynomial.exp(x)), code(plain_fa4(x * 1.44269504F))) << x;
    EXPECT_EQ(code(sleef.exp2(x)), code(plain_sleef_u10(x * 0.693147181F))) << x;
  }
}

// The error of e^x in units in the last place of the exact result.
double error_in_ulp(const ExpFunction& function, float x) {
  mpfr_t exact;
  mpfr_init2(exact, 80);
  mpfr_set_flt(exact, x, MPFR_RNDN);
  mpfr_exp(exact, exact, MPFR_RNDN);
  const int exponent = static_cast<int>(mpfr_get_exp(exact));  // value in [2^(exponent − 1), …)
  mpfr_sub_d(exact, exact, static_cast<double>(function.exp(x)), MPFR_RNDN);
  const double error = std::fabs(std::ldexp(mpfr_get_d(exact, MPFR_RNDN), 24 - exponent));
  mpfr_clear(exact);
  return error;
}

// The largest error over every 4096th float of [least, 0].
double worst_error(ExpModel model, float least) {
  const ExpFunction function(model);
  double worst = 0;
  for (std::uint32_t bits = 0x80000000U; std::bit_cast<float>(bits) >= least; bits += 4096)
    worst = std::fmax(worst, error_in_ulp(function, std::bit_cast<float>(bits)));
  return worst;
}

// 5.67 and 0.979 ulp are what a port of the originals showed over every 7th float of [−87, 0]; so
// does this one (5.668 and 0.9785), at the arguments named here. A sample stays below.
TEST(ExpModels, ErrorsAreThoseOfTheOriginals) {
  const double torch = worst_error(ExpModel::torch_exp_u20, -86.98F);
  EXPECT_LE(torch, 5.668);
  EXPECT_GE(torch, 5.0);
  EXPECT_NEAR(error_in_ulp(ExpFunction(ExpModel::torch_exp_u20), -0x1.5bca82p+6F), 5.668, 5e-4);
  EXPECT_EQ(ExpFunction(ExpModel::torch_exp_u20).exp(-87.0F), 0.0F);
  const double sleef = worst_error(ExpModel::sleef_u10, -87.0F);
  EXPECT_LE(sleef, 0.979);
  EXPECT_GE(sleef, 0.9);
  EXPECT_NEAR(error_in_ulp(ExpFunction(ExpModel::sleef_u10), -0x1.759aa2p+2F), 0.9785, 5e-5);
  EXPECT_LE(worst_error(ExpModel::correctly_rounded, -87.0F), 0.5);
  double cubic = 0;
  for (int i = 0; i < 4096; ++i) {
    const float x = -static_cast<float>(i) / 4096;
    const double exact = std::exp2(static_cast<double>(x));
    cubic = std::fmax(cubic, std::fabs(ExpFunction(ExpModel::fa4_polynomial).exp2(x) / exact - 1));
  }
  EXPECT_NEAR(cubic, 8.8e-5, 0.1e-5);
  RecordProperty("torch_exp_u20_ulp", std::to_string(torch));
  RecordProperty("sleef_u10_ulp", std::to_string(sleef));
}

TEST(ExpModels, UlpMovesWithinItsBandByTheBitsOfTheArgument) {
  const std::vector<float> in = arguments(5'000);
  std::vector<float> plain(in.size()), first(in.size()), second(in.size()), other(in.size());
  ExpFunction(ExpModel::ex2_approx).exp2(in, plain);
  const ExpFunction moved(ExpModel::ex2_approx, {.ulp = 2, .seed = 11});
  moved.exp2(in, first, SimdLevel::scalar);
  moved.exp2(in, second);
  ExpFunction(ExpModel::ex2_approx, {.ulp = 2, .seed = 12}).exp2(in, other);
  std::set<std::int64_t> steps;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(code(first[i]), code(second[i])) << in[i];
    differ += static_cast<std::size_t>(code(first[i]) != code(other[i]));
    const std::int64_t step = std::int64_t{code(first[i])} - std::int64_t{code(plain[i])};
    const bool fixed = std::isnan(in[i]) || std::isinf(in[i]) || in[i] == std::floor(in[i]);
    if (fixed) {
      EXPECT_EQ(step, 0) << in[i];
    }
    if (first[i] != 0) steps.insert(step);
    EXPECT_FALSE(first[i] > 0 && first[i] < 0x1p-126F) << in[i];
  }
  EXPECT_EQ(steps, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_GT(differ, in.size() / 2);
  EXPECT_TRUE(moved.bounded());
}

TEST(ExpModels, UlpOfExpf) {
  const std::vector<float> in = arguments(3'000);
  std::vector<float> plain(in.size()), moved = in;
  ExpFunction(ExpModel::cuda_expf).exp(in, plain);
  ExpFunction(ExpModel::cuda_expf, {.ulp = 1}).exp(moved, moved);
  std::set<std::int64_t> steps;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::int64_t step = std::int64_t{code(moved[i])} - std::int64_t{code(plain[i])};
    if (in[i] == 0 || !std::isfinite(in[i])) {
      EXPECT_EQ(step, 0) << in[i];
    }
    steps.insert(step);
  }
  EXPECT_EQ(steps, (std::set<std::int64_t>{-1, 0, 1}));
}

TEST(ExpModels, TableScalesItsValues) {
  // Two fraction bits, values that no rounding of 2^x gives.
  const std::array<float, 4> values{1.0F, 0x1.306ffp0F, 0x1.6a09fp0F, 0x1.ae89fp0F};
  const Result<ExpTable> table = make_exp_table(values);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->fraction_bits, 2);
  const ExpFunction function(ExpModel::ex2_approx, {.table = &*table});
  EXPECT_FALSE(function.bounded());
  EXPECT_EQ(function.exp2(0.25F), 0x1.306ffp0F);
  EXPECT_EQ(function.exp2(3.5F), 0x1.6a09fp3F);
  EXPECT_EQ(function.exp2(-0.25F), 0x1.ae89fp-1F);
  EXPECT_EQ(function.exp2(0.49F), 0x1.306ffp0F) << "bits beyond the table are dropped";
  EXPECT_EQ(function.exp2(-0x1p-149F), 0x1.ae89fp-1F) << "toward −infinity";
  EXPECT_EQ(function.exp2(-126.0F), 0x1p-126F);
  EXPECT_EQ(function.exp2(-126.25F), 0.0F) << "flushed";
  EXPECT_EQ(function.exp2(128.0F), infinity);
  EXPECT_EQ(function.exp2(-infinity), 0.0F);
  EXPECT_TRUE(std::isnan(function.exp2(quiet_nan)));
}

TEST(ExpModels, BadTablesAndOptionsAreNamed) {
  const auto message = [](const std::vector<float>& values) {
    const Result<ExpTable> table = make_exp_table(values);
    return table ? std::string("accepted") : table.error().message;
  };
  EXPECT_NE(message({1.0F, 1.4F, 1.5F}).find("3 values"), std::string::npos);
  EXPECT_NE(message({1.0F, 1.5F}).find("entry 1 is 1.5"), std::string::npos);
  EXPECT_NE(message({0x1.000002p0F, 0x1.6a09e6p0F}).find("entry 0"), std::string::npos);
  EXPECT_NE(message({1.0F, quiet_nan}).find("entry 1 is nan"), std::string::npos);
  EXPECT_EQ(message({1.0F, 0x1.6a09e6p0F}), "accepted");
  const ExpTable table{1, {}};
  EXPECT_FALSE(check_exp_options(ExpModel::sleef_u10, {.ulp = 1}));
  EXPECT_FALSE(check_exp_options(ExpModel::sleef_u10, {.table = &table}));
  EXPECT_FALSE(check_exp_options(ExpModel::ex2_approx, {.table = &table, .ulp = 1}));
  EXPECT_FALSE(check_exp_options(ExpModel::ex2_approx, {.ulp = -1}));
  EXPECT_FALSE(check_exp_options(ExpModel::ex2_approx, {.ulp = std::nan("")}));
  EXPECT_FALSE(check_exp_options(ExpModel::cuda_expf, {.table = &table}));
  EXPECT_TRUE(check_exp_options(ExpModel::cuda_expf, {.ulp = 2}));
  EXPECT_TRUE(check_exp_options(ExpModel::ex2_approx, {.ulp = 2}));
}

TEST(ExpModels, RowsSayWhereTheyComeFrom) {
  std::set<std::string_view> names;
  for (const ExpModelRow& row : exp_models()) {
    EXPECT_EQ(&exp_model_row(row.model), &row);
    EXPECT_EQ(to_string(row.model), row.name);
    EXPECT_EQ(ExpFunction(row.model).bounded(), row.bounded);
    EXPECT_FALSE(row.source.empty() || row.date.empty() || row.note.empty()) << row.name;
    names.insert(row.name);
  }
  EXPECT_EQ(names.size(), exp_models().size());
}

}  // namespace
}  // namespace kvsim
