// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/exp_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/elementary_double.h"
#include "sim/engine/exp_kernel.h"
#include "sim/exp_constants.h"
#include "sim/philox.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr float log2_e = 0x1.715476p+0F;  // 1.442695, the float nearest to log2 e
constexpr float ln_2 = 0x1.62e43p-1F;     // 0.6931472, the float nearest to ln 2
constexpr float smallest_normal = 0x1p-126F;
constexpr std::uint64_t ulp_stream = 0x6578322e756c70;  // "ex2.ulp"

constexpr auto rows = std::to_array<ExpModelRow>({
    {"correctly-rounded", ExpModel::correctly_rounded, ExpBase::e, false,
     "IEEE 754-2019, clause 9.2", "2019", Evidence::documented,
     "e^x and 2^x rounded once to nearest, ties to even"},
    {"torch-exp-u20", ExpModel::torch_exp_u20, ExpBase::e, false,
     "pytorch/pytorch, aten/src/ATen/cpu/vec/vec512/vec512_float.h, exp_u20", "2.11",
     Evidence::measured,
     "at most 5.67 ulp on [-86.98, 0]; +0 below -86.99; float32 attention on a CPU, full vectors"},
    {"torch-fexp-u20", ExpModel::torch_fexp_u20, ExpBase::e, false,
     "pytorch/pytorch, aten/src/ATen/cpu/vec/vec512/vec512_float.h, fexp_u20 (PR 151441)", "2.11",
     Evidence::measured, "a cubic, relative error 5.9e-5; 16-bit attention on a CPU; NaN gives -0"},
    {"sleef-u10", ExpModel::sleef_u10, ExpBase::e, false,
     "shibatch/sleef, src/libm/sleefsimdsp.c, xexpf", "3.x", Evidence::measured,
     "at most 0.979 ulp; PyTorch's softmax and silu on a CPU"},
    {"libm-expf", ExpModel::libm_expf, ExpBase::e, false,
     "GNU C Library, sysdeps/ieee754/flt-32/e_expf.c, with FMA", "2.28", Evidence::measured,
     "a cubic in binary64, at most 0.502 ulp; equal to glibc 2.36 for every binary32; PyTorch's "
     "tails on a CPU"},
    {"fa4-polynomial", ExpModel::fa4_polynomial, ExpBase::two, false,
     "Dao-AILab/flash-attention, flash_attn/cute/utils.py, ex2_emulation", "2025",
     Evidence::inferred, "a cubic, relative error 8.8e-5; arguments above 127 are not expected"},
    {"cuda-expf", ExpModel::cuda_expf, ExpBase::e, true,
     "NVIDIA, CUDA C++ Programming Guide, mathematical functions: expf, 2 ulp", "2025",
     Evidence::assumed, "bounded: e^x correctly rounded stands for it"},
    {"ex2-approx", ExpModel::ex2_approx, ExpBase::two, true,
     "NVIDIA, PTX ISA, ex2.approx.ftz.f32: 2^-22 relative error, no formula", "2025",
     Evidence::assumed,
     "bounded: 2^x correctly rounded, subnormals flushed, unless --exp-table gives captured "
     "results"},
});

/// The captured result for x.
float look_up(const ExpTable& table, float x) {
  if (std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
  if (x >= 128) return std::numeric_limits<float>::infinity();
  if (x < -130) return 0;
  const double scaled = std::ldexp(static_cast<double>(x), table.fraction_bits);  // exact
  const auto position = static_cast<std::int64_t>(std::floor(scaled));
  const std::int64_t mask = (std::int64_t{1} << table.fraction_bits) - 1;
  const float fraction = table.values[static_cast<std::size_t>(position & mask)];
  const double result =
      std::ldexp(static_cast<double>(fraction), static_cast<int>(position >> table.fraction_bits));
  if (result < smallest_normal) return 0;
  return result >= 0x1p128 ? std::numeric_limits<float>::infinity() : static_cast<float>(result);
}

/// The result for x moved by as many units in the last place as the address of x says.
float move(float x, float result, const ExpOptions& options) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto most = static_cast<std::int64_t>(options.ulp);
  const std::uint64_t random = philox_bits(options.seed, ulp_stream, bits) >> 32;
  const auto choices = static_cast<std::uint64_t>(2 * most + 1);
  const std::int64_t step = static_cast<std::int64_t>((random * choices) >> 32) - most;
  // Positive floats in the order of their codes, between +0 and infinity.
  const std::int64_t code = std::clamp<std::int64_t>(
      std::int64_t{std::bit_cast<std::uint32_t>(result)} + step, 0, 0x7f800000);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code));
}

float flush(float x) { return x < smallest_normal ? 0 : x; }

/// kernel(kind, in, out), then every result moved for which moves(x) holds.
template <class Moves>
void apply_moved(const ExpOptions& options, engine::ExpKind kind, std::span<const float> in,
                 std::span<float> out, engine::ExpKernel kernel, const Moves& moves) {
  std::array<float, 256> arguments;  // `out` may be `in`
  for (std::size_t begin = 0; begin < in.size(); begin += arguments.size()) {
    const std::size_t count = std::min(arguments.size(), in.size() - begin);
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(begin), count, arguments.begin());
    float* results = out.data() + begin;
    kernel(kind, arguments.data(), results, count);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = arguments[i];
      if (std::isfinite(x) && moves(x)) results[i] = move(x, results[i], options);
    }
  }
}

/// 2^x by ex2_approx.
void ex2_approx(const ExpOptions& options, std::span<const float> in, std::span<float> out,
                engine::ExpKernel kernel) {
  if (options.table != nullptr) {
    std::transform(in.begin(), in.end(), out.begin(),
                   [&](float x) { return look_up(*options.table, x); });
    return;
  }
  if (options.ulp < 1) {
    kernel(engine::ExpKind::exp2, in.data(), out.data(), in.size());
  } else {
    // A result that was flushed stays +0.
    apply_moved(options, engine::ExpKind::exp2, in, out, kernel,
                [](float x) { return x != std::floor(x) && x > -126; });
  }
  std::transform(out.begin(), out.end(), out.begin(), flush);
}

/// The kernel's function for a model other than ex2_approx.
engine::ExpKind kernel_kind(ExpModel model) {
  switch (model) {
    case ExpModel::torch_exp_u20:
      return engine::ExpKind::torch_exp_u20;
    case ExpModel::torch_fexp_u20:
      return engine::ExpKind::torch_fexp_u20;
    case ExpModel::sleef_u10:
      return engine::ExpKind::sleef_u10;
    case ExpModel::fa4_polynomial:
      return engine::ExpKind::fa4_polynomial;
    case ExpModel::correctly_rounded:
    case ExpModel::libm_expf:
    case ExpModel::cuda_expf:
    case ExpModel::ex2_approx:
      break;
  }
  return engine::ExpKind::exp;
}

/// e^x = 2^(k/32) · 2^r in binary64, with |r| ≤ 1/64 and 2^r a cubic.
float libm_expf(float x) {
  constexpr double steps_per_power = 32;
  constexpr double shifter = 0x1.8p52;  // adding it rounds to an integer, ties to even
  constexpr double inverse_ln_2 = 0x1.71547652b82fep+0 * steps_per_power;
  constexpr double cubic = 0x1.c6af84b912394p-5 / 0x1p15;
  constexpr double square = 0x1.ebfce50fac4f3p-3 / 0x1p10;
  constexpr double linear = 0x1.62e42ff0c52d6p-1 / 0x1p5;
  if (std::isnan(x)) return x;
  if (x > 0x1.62e42ep6F) return std::numeric_limits<float>::infinity();  // above ln 2^128
  if (x < -0x1.9fe368p6F) return 0;                                      // below ln 2^−150
  const auto argument = static_cast<double>(x);
  const double steps = std::fma(inverse_ln_2, argument, shifter) - shifter;
  const double r = std::fma(inverse_ln_2, argument, -steps);
  const auto k = static_cast<int>(steps);
  const auto table_row = static_cast<std::size_t>(k & 31);
  const double power = std::ldexp(exp_constants::powers[2 * table_row].high, k >> 5);
  const double upper = std::fma(cubic, r, square);
  const double lower = std::fma(linear, r, 1.0);
  return static_cast<float>(std::fma(upper, r * r, lower) * power);
}

/// The argument rounded after its multiplication by the logarithm that changes the base.
void change_base(std::span<const float> in, std::span<float> out, float factor) {
  std::transform(in.begin(), in.end(), out.begin(), [&](float x) { return x * factor; });
}

}  // namespace

std::span<const ExpModelRow> exp_models() { return rows; }

const ExpModelRow& exp_model_row(ExpModel model) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const ExpModelRow& row) { return row.model == model; });
}

std::string_view to_string(ExpModel model) { return exp_model_row(model).name; }

Result<ExpTable> make_exp_table(std::span<const float> values) {
  const auto size = static_cast<std::uint64_t>(values.size());
  if (!std::has_single_bit(size) || size < 2 || size > (std::uint64_t{1} << 24)) {
    return Error{ErrorKind::usage,
                 fmt::format("exp table of {} values: accepted is a power of two from 2 to 2^24, "
                             "the results of 2^x for x = 0, 1/n, ..., (n-1)/n",
                             size)};
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(size);
    const double expected = elementary::exp2_double(x);
    const bool close = std::fabs(static_cast<double>(values[i]) - expected) <= expected * 0x1p-20;
    if (!close || values[i] < 1 || values[i] > 2 || (i == 0 && values[i] != 1)) {
      return Error{ErrorKind::usage,
                   fmt::format("exp table: entry {} is {}, but 2^({}/{}) is about {}; accepted is "
                               "1 first and then a relative error of at most 2^-20",
                               i, values[i], i, size, expected)};
    }
  }
  return ExpTable{std::countr_zero(size), values};
}

Result<bool> check_exp_options(ExpModel model, const ExpOptions& options) {
  const auto usage = [](std::string text) { return Error{ErrorKind::usage, std::move(text)}; };
  if (!(options.ulp >= 0 && options.ulp <= max_exp_ulp)) {
    return usage(fmt::format("exp ulp {}: accepted are 0 to {}", options.ulp, max_exp_ulp));
  }
  if (model != ExpModel::ex2_approx && options.table != nullptr) {
    return usage(fmt::format("exp model '{}' takes no table: only '{}' does", to_string(model),
                             to_string(ExpModel::ex2_approx)));
  }
  if (!exp_model_row(model).bounded && options.ulp > 0) {
    return usage(fmt::format("exp model '{}' is exact and takes no ulp: '{}' and '{}' do",
                             to_string(model), to_string(ExpModel::cuda_expf),
                             to_string(ExpModel::ex2_approx)));
  }
  if (options.table != nullptr && options.ulp > 0) {
    return usage("exp table and exp ulp exclude each other: captured results are exact");
  }
  return true;
}

ExpFunction::ExpFunction(ExpModel model, ExpOptions options) : model_(model), options_(options) {}

bool ExpFunction::bounded() const {
  return exp_model_row(model_).bounded && options_.table == nullptr;
}

void ExpFunction::exp(std::span<const float> in, std::span<float> out, SimdLevel level) const {
  if (exp_model_row(model_).base == ExpBase::two) {
    change_base(in, out, log2_e);
    exp2(out, out, level);
    return;
  }
  if (model_ == ExpModel::libm_expf) {
    std::transform(in.begin(), in.end(), out.begin(), libm_expf);
    return;
  }
  const engine::ExpKernel kernel = engine::exp_kernel(level);
  if (options_.ulp < 1) {
    kernel(kernel_kind(model_), in.data(), out.data(), in.size());
  } else {
    apply_moved(options_, kernel_kind(model_), in, out, kernel, [](float x) { return x != 0; });
  }
}

void ExpFunction::exp2(std::span<const float> in, std::span<float> out, SimdLevel level) const {
  const engine::ExpKernel kernel = engine::exp_kernel(level);
  switch (model_) {
    case ExpModel::correctly_rounded:
      kernel(engine::ExpKind::exp2, in.data(), out.data(), in.size());
      return;
    case ExpModel::ex2_approx:
      ex2_approx(options_, in, out, kernel);
      return;
    case ExpModel::fa4_polynomial:
      kernel(engine::ExpKind::fa4_polynomial, in.data(), out.data(), in.size());
      return;
    case ExpModel::torch_exp_u20:
    case ExpModel::torch_fexp_u20:
    case ExpModel::sleef_u10:
    case ExpModel::libm_expf:
    case ExpModel::cuda_expf:
      break;
  }
  change_base(in, out, ln_2);
  exp(out, out, level);
}

float ExpFunction::exp(float x) const {
  float result = 0;
  exp({&x, 1}, {&result, 1}, SimdLevel::scalar);
  return result;
}

float ExpFunction::exp2(float x) const {
  float result = 0;
  exp2({&x, 1}, {&result, 1}, SimdLevel::scalar);
  return result;
}

}  // namespace kvsim
