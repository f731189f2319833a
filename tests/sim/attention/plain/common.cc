// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/common.h"

#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/units/dot.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::plain {
namespace {

using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// 160 bits decide every rounding of these functions in binary32: no result lies that close to the
// middle of two floats without being one.
float by_mpfr(Function function, float x) {
  static thread_local struct Numbers {
    mpfr_t x, y;
    Numbers() { mpfr_inits2(160, x, y, static_cast<mpfr_ptr>(nullptr)); }
    ~Numbers() {
      mpfr_clears(x, y, static_cast<mpfr_ptr>(nullptr));
      mpfr_free_cache();
    }
  } numbers;
  mpfr_set_flt(numbers.x, x, MPFR_RNDN);
  function(numbers.y, numbers.x, MPFR_RNDN);
  return mpfr_get_flt(numbers.y, MPFR_RNDN);
}

}  // namespace

float Problem::scale() const {
  if (given_scale != 0) return given_scale;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

bool Problem::sees(std::int64_t query, std::int64_t key) const {
  const std::int64_t position = kv_len - query_len + query;
  if (causal && key > position) return false;
  return window <= 0 || key > position - window;
}

std::span<const float> Problem::query(std::int64_t head, std::int64_t i) const {
  return std::span(q).subspan(static_cast<std::size_t>((head * query_len + i) * head_dim),
                              static_cast<std::size_t>(head_dim));
}
std::span<const float> Problem::key(std::int64_t head, std::int64_t j) const {
  return std::span(k).subspan(static_cast<std::size_t>((head / group() * kv_len + j) * head_dim),
                              static_cast<std::size_t>(head_dim));
}
std::span<const float> Problem::value(std::int64_t head, std::int64_t j) const {
  return std::span(v).subspan(static_cast<std::size_t>((head / group() * kv_len + j) * head_dim),
                              static_cast<std::size_t>(head_dim));
}

softfloat::Bits code(const softfloat::Format& f, float x) {
  return softfloat::convert(f, softfloat::binary32, softfloat::from_float(x), {}).bits;
}
float rounded(const softfloat::Format& f, float x) { return softfloat::to_float(f, code(f, x)); }

float exp_f(float x) { return by_mpfr(mpfr_exp, x); }
float exp2_f(float x) { return by_mpfr(mpfr_exp2, x); }
float log_f(float x) { return by_mpfr(mpfr_log, x); }
float log2_f(float x) { return by_mpfr(mpfr_log2, x); }
float tanh_f(float x) { return by_mpfr(mpfr_tanh, x); }

float exp2_flushed(float x) {
  const float y = exp2_f(x);
  return y < std::numeric_limits<float>::min() ? 0.0F : y;
}
float exp_by_exp2(float x) { return exp2_flushed(x * log2e); }

float exp_u20(float x) {
  const float lowest = std::bit_cast<float>(0xc2aeac50U);
  const float highest = std::bit_cast<float>(0x42b17218U);
  if (x < lowest) return 0;
  const float y = x > highest ? highest : x;
  const float n = std::floor(std::fma(y, log2e, 0.5F));
  const float r = std::fma(-n, ln2, y);
  float p = 0.00828929059F;
  for (const float coefficient : {0.0418978221F, 0.166676521F, 0.499991506F, 0.999999701F, 1.0F}) {
    p = std::fma(r, p, coefficient);
  }
  // 2^(n − 1) is made of an exponent field, which is 0 for the smallest n.
  const auto field = static_cast<std::uint32_t>(static_cast<int>(n) - 1 + 127);
  return p * std::bit_cast<float>(field << 23) * 2.0F;
}

float fexp_u20(float x) {
  if (x < std::bit_cast<float>(0xc2aeac50U)) return 0;
  if (x > std::bit_cast<float>(0x42b17218U)) return infinity;
  const float y = x * log2e;
  const float fraction = y - std::floor(y);
  float p = -0.079204240219773236F;
  for (const float coefficient :
       {-0.22433836478672356F, 0.30354260500649682F, 0.00010703434948458272F}) {
    p = std::fma(fraction, p, coefficient);
  }
  const float bits = std::fma(0x1p23F, y - p, 127 * 0x1p23F);
  return std::bit_cast<float>(static_cast<std::int32_t>(bits));
}

float exp2_cubic(float x) {
  const float y = x < -127.0F ? -127.0F : x;
  const float whole = std::floor(y);
  const float fraction = y - whole;
  float p = 0.077119089663028717041015625F;
  for (const float coefficient : {0.227564394474029541015625F, 0.695146143436431884765625F, 1.0F}) {
    p = std::fma(p, fraction, coefficient);
  }
  // The integer is added to the exponent field, whatever the field then says.
  const auto shift = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole)) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + shift);
}

float fused_exponent(float score, float maximum, float scale_log2) {
  return std::fma(score, scale_log2, -(maximum * scale_log2));
}
float unfused_exponent(float score, float maximum, float scale_log2) {
  const float scaled = score * scale_log2;
  const float scaled_maximum = maximum * scale_log2;
  return scaled - scaled_maximum;
}

float chain(const MatrixUnit& unit, std::span<const float> a, std::span<const float> b, float c) {
  std::vector<softfloat::Bits> codes_a;
  std::vector<softfloat::Bits> codes_b;
  for (std::size_t k = 0; k < a.size(); ++k) {
    codes_a.push_back(code(unit.operand, a[k]));
    codes_b.push_back(code(unit.operand, b[k]));
  }
  const softfloat::Bits d = unit_dot(unit, {codes_a, codes_b, code(unit.output, c)});
  return softfloat::to_float(unit.output, d);
}

float exact_dot(std::span<const float> a, std::span<const float> b) {
  mpfr_t sum;
  mpfr_t x;
  mpfr_t y;
  // Products of floats are multiples of 2^-298 below 2^256; a carry for each doubling of terms.
  mpfr_inits2(640, sum, x, y, static_cast<mpfr_ptr>(nullptr));
  mpfr_set_zero(sum, 1);
  for (std::size_t k = 0; k < a.size(); ++k) {
    mpfr_set_flt(x, a[k], MPFR_RNDN);
    mpfr_set_flt(y, b[k], MPFR_RNDN);
    mpfr_mul(x, x, y, MPFR_RNDN);
    mpfr_add(sum, sum, x, MPFR_RNDN);
  }
  const float rounded_sum = mpfr_get_flt(sum, MPFR_RNDN);
  mpfr_clears(sum, x, y, static_cast<mpfr_ptr>(nullptr));
  return rounded_sum;
}

const MatrixUnit& unit_named(std::string_view name) {
  const MatrixUnit* unit = find_matrix_unit(name);
  if (unit == nullptr) {
    std::fprintf(stderr, "no matrix unit %s\n", std::string(name).c_str());
    std::abort();
  }
  return *unit;
}
const MatrixUnit& unit_for(std::string_view prefix, const softfloat::Format& storage) {
  const char* suffix = storage == softfloat::binary16 ? ".f16.f32" : ".bf16.f32";
  return unit_named(std::string(prefix) + suffix);
}

float butterfly(std::vector<float> lanes) {
  std::size_t width = std::bit_ceil(lanes.size());
  while (width > 1) {
    width /= 2;
    for (std::size_t i = 0; i < width && i + width < lanes.size(); ++i) {
      lanes[i] = lanes[i] + lanes[i + width];
    }
    if (lanes.size() > width) lanes.resize(width);
  }
  return lanes[0];
}

}  // namespace kvsim::plain
