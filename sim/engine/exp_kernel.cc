// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set by Highway's foreach_target.h; see column_kernel.cc for the
// targets that are left out.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/engine/exp_kernel.cc"
#include "sim/engine/exp_kernel.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sim/elementary.h"
#include "sim/elementary_constants.h"

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using VF = hn::Vec<F>;
using VI = hn::Vec<I>;
using D = hn::ScalableTag<double>;
using VD = hn::Vec<D>;
using HalfF = hn::Rebind<float, D>;  // as many floats as a vector holds doubles
using VHalf = hn::Vec<HalfF>;

/// a × b + c with one rounding.
HWY_INLINE VF fused(VF a, VF b, VF c) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MulAdd(a, b, c);
#else
  const F d;
  float as[HWY_MAX_BYTES / sizeof(float)], bs[HWY_MAX_BYTES / sizeof(float)],
      cs[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(a, d, as);
  hn::StoreU(b, d, bs);
  hn::StoreU(c, d, cs);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) cs[i] = std::fma(as[i], bs[i], cs[i]);
  return hn::LoadU(d, cs);
#endif
}

HWY_INLINE VF fused(VF a, VF b, float c) { return fused(a, b, hn::Set(F(), c)); }

/// 2^n for −126 ≤ n ≤ 127, +0 for n = −127.
HWY_INLINE VF power_of_two(VI n) {
  return hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I(), 127))));
}

/// PyTorch's ln 2^128 and ln 2^−126.
constexpr float log_largest = 0x1.62e43p+6F;
constexpr float log_smallest = -0x1.5d58ap+6F;
constexpr float log2_e_float = 0x1.715476p+0F;

/// ATen vec512_float.h, Vectorized<float>::exp_u20. Min and max of x86 return their second operand
/// where the first is NaN, so that NaN gives what ln 2^128 gives. From n = −126 down the power of
/// two is +0.
HWY_INLINE VF torch_exp_u20(VF x) {
  const F d;
  const VF largest = hn::Set(d, log_largest);
  const VF smallest = hn::Set(d, log_smallest);
  VF s = hn::IfThenElse(hn::Lt(x, largest), x, largest);
  s = hn::IfThenElse(hn::Gt(s, smallest), s, smallest);
  const VF n = hn::Floor(fused(s, hn::Set(d, log2_e_float), 0.5F));
  const VF r = fused(hn::Neg(n), hn::Set(d, 0x1.62e43p-1F), s);
  VF sum = fused(r, hn::Set(d, 0.00828929059F), 0.0418978221F);
  sum = fused(r, sum, 0.166676521F);
  sum = fused(r, sum, 0.499991506F);
  sum = fused(r, sum, 0.999999701F);
  sum = fused(r, sum, 1.0F);
  const VF half_power = power_of_two(hn::ConvertTo(I(), hn::Sub(n, hn::Set(d, 1.0F))));
  const VF scaled = hn::Mul(hn::Mul(sum, half_power), hn::Set(d, 2.0F));
  return hn::IfThenElse(hn::Lt(x, smallest), hn::Zero(d), scaled);
}

/// ATen vec512_float.h, Vectorized<float>::fexp_u20: the cubic of Malossi, Ineichen, Bekas,
/// Curioni, "Fast exponential computation on SIMD architectures", 2015: the result's code is
/// 2^23 (y − p(y − ⌊y⌋) + 127), y = x log2 e, cut to an integer. The conversion of x86 makes NaN
/// the code of −0.
HWY_INLINE VF torch_fexp_u20(VF x) {
  const F d;
  const auto is_small = hn::Lt(x, hn::Set(d, log_smallest));
  const auto is_large = hn::Gt(x, hn::Set(d, log_largest));
  const auto is_nan = hn::IsNaN(x);
  const VF safe = hn::IfThenElse(hn::Or(hn::Or(is_small, is_large), is_nan), hn::Zero(d), x);
  const VF y = hn::Mul(safe, hn::Set(d, log2_e_float));
  const VF fraction = hn::Sub(y, hn::Floor(y));
  VF p = fused(fraction, hn::Set(d, -0.079204240219773236F), -0.22433836478672356F);
  p = fused(fraction, p, 0.30354260500649682F);
  p = fused(fraction, p, 0.00010703434948458272F);
  const VF code = fused(hn::Set(d, 0x1p23F), hn::Sub(y, p), 0x1.fcp+29F);
  VF result = hn::BitCast(d, hn::ConvertTo(I(), code));
  result = hn::IfThenElse(is_small, hn::Zero(d), result);
  result = hn::IfThenElse(is_large, hn::Set(d, HUGE_VALF), result);
  return hn::IfThenElse(is_nan, hn::Set(d, -0.0F), result);
}

/// SLEEF, sleefsimdsp.c, xexpf: x − n ln 2 in two parts, degree 6, the power of two in two steps.
HWY_INLINE VF sleef_u10(VF x) {
  const F d;
  const auto is_small = hn::Lt(x, hn::Set(d, -104.0F));
  const auto is_large = hn::Gt(x, hn::Set(d, 100.0F));
  const auto is_nan = hn::IsNaN(x);
  const VF safe = hn::IfThenElse(hn::Or(hn::Or(is_small, is_large), is_nan), hn::Zero(d), x);
  const VI q = hn::NearestInt(hn::Mul(safe, hn::Set(d, log2_e_float)));
  const VF n = hn::ConvertTo(d, q);
  VF s = fused(n, hn::Set(d, -0.693145751953125F), safe);
  s = fused(n, hn::Set(d, -1.428606765330187045e-06F), s);
  VF u = fused(hn::Set(d, 0.000198527617612853646278381F), s, 0.00139304355252534151077271F);
  u = fused(u, s, 0.00833336077630519866943359F);
  u = fused(u, s, 0.0416664853692054748535156F);
  u = fused(u, s, 0.166666671633720397949219F);
  u = fused(u, s, 0.5F);
  u = hn::Add(hn::Set(d, 1.0F), fused(hn::Mul(s, s), u, s));
  const VI first = hn::ShiftRight<1>(q);
  u = hn::Mul(hn::Mul(u, power_of_two(first)), power_of_two(hn::Sub(q, first)));
  u = hn::IfThenElse(is_small, hn::Zero(d), u);
  u = hn::IfThenElse(is_large, hn::Set(d, HUGE_VALF), u);
  return hn::IfThenElse(is_nan, hn::Set(d, std::numeric_limits<float>::quiet_NaN()), u);
}

/// FlashAttention, flash_attn/cute/utils.py, ex2_emulation: ⌊x⌋ stands in the low bits of
/// x + (2^23 + 2^22) rounded down, and is added to the exponent of a cubic in x − ⌊x⌋. The kernel
/// assumes x ≤ 127; above that the exponent overflows here as it does there.
HWY_INLINE VF fa4_polynomial(VF x) {
  const F d;
  const VF magic = hn::Set(d, 0x1.8p23F);
  const VF least = hn::Set(d, -127.0F);
  const VF most = hn::Set(d, 0x1p20F);                      // keeps ⌊x⌋ within an integer
  VF clamped = hn::IfThenElse(hn::Gt(x, least), x, least);  // NaN gives −127
  clamped = hn::IfThenElse(hn::Lt(clamped, most), clamped, most);
  const VF rounded = hn::Add(hn::Floor(clamped), magic);  // exact
  const VF fraction = hn::Sub(clamped, hn::Sub(rounded, magic));
  VF p = fused(hn::Set(d, 0.077119089663028717041015625F), fraction, 0.227564394474029541015625F);
  p = fused(p, fraction, 0.695146143436431884765625F);
  p = fused(p, fraction, 1.0F);
  const I di;
  const VI exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

/// Doubles rounded to floats. (Highway's scalar DemoteTo makes infinity the largest float.)
HWY_INLINE VHalf to_floats(VD x) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(HalfF(), static_cast<float>(hn::GetLane(x)));
#else
  return hn::DemoteTo(HalfF(), x);
#endif
}

/// e^x (kBaseE) or 2^x of as many floats as a vector holds doubles: the polynomial of
/// elementary_double.h, whose bound covers fused and separate operations alike. Where both ends of
/// the interval of the result round to one float, that is it; other lanes go to the scalar
/// function.
template <bool kBaseE>
HWY_INLINE void exponential(const float* in, float* out) {
  const D d;
  const HalfF df;
  const hn::RebindToSigned<D> di;
  const VHalf x = hn::LoadU(df, in);
  VD t = hn::PromoteTo(d, x);
  if constexpr (kBaseE) t = hn::Mul(t, hn::Set(d, elementary::log2_e));
  t = hn::Min(hn::Max(t, hn::Set(d, -152.0)), hn::Set(d, 130.0));
  const VD shift = hn::Set(d, 0x1.8p52);
  const VD shifted = hn::Add(t, shift);
  const VD f = hn::Sub(t, hn::Sub(shifted, shift));
  constexpr auto& c = elementary::exp2_polynomial;
  VD sum = hn::Set(d, c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = hn::MulAdd(f, sum, hn::Set(d, c[i]));
  sum = hn::MulAdd(f, sum, hn::Set(d, 1.0));
  const auto exponent = hn::ShiftLeft<52>(hn::BitCast(di, shifted));
  const VD y = hn::BitCast(d, hn::Add(hn::BitCast(di, sum), exponent));
  constexpr double error = 0x1p-43;
  const VHalf low = to_floats(hn::Mul(y, hn::Set(d, 1 - error)));
  const VHalf high = to_floats(hn::Mul(y, hn::Set(d, 1 + error)));
  const auto undecided = hn::Or(hn::Ne(low, high), hn::IsNaN(x));
  if (HWY_LIKELY(hn::AllFalse(df, undecided))) {
    hn::StoreU(low, df, out);
    return;
  }
  float arguments[HWY_MAX_BYTES / sizeof(double)];
  hn::StoreU(x, df, arguments);
  for (std::size_t i = 0; i < hn::Lanes(df); ++i)
    out[i] = kBaseE ? exp_f32(arguments[i]) : exp2_f32(arguments[i]);
}

/// Calls step(in, out) on blocks of `lanes` floats; the last one is padded with zeros.
template <class Step>
HWY_INLINE void for_each_block(const float* in, float* out, std::size_t count, std::size_t lanes,
                               const Step& step) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) step(in + i, out + i);
  if (i == count) return;
  float last[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(in + i, in + count, last);
  step(last, last);
  std::copy(last, last + (count - i), out + i);
}

template <VF (*function)(VF)>
HWY_INLINE void apply(const float* in, float* out, std::size_t count) {
  const F d;
  for_each_block(in, out, count, hn::Lanes(d), [&](const float* from, float* to) HWY_ATTR {
    hn::StoreU(function(hn::LoadU(d, from)), d, to);
  });
}

}  // namespace

void exponentials(ExpKind kind, const float* in, float* out, std::size_t count) {
  switch (kind) {
    case ExpKind::exp:
      for_each_block(in, out, count, hn::Lanes(D()),
                     [](const float* from, float* to) HWY_ATTR { exponential<true>(from, to); });
      return;
    case ExpKind::exp2:
      for_each_block(in, out, count, hn::Lanes(D()),
                     [](const float* from, float* to) HWY_ATTR { exponential<false>(from, to); });
      return;
    case ExpKind::torch_exp_u20:
      return apply<torch_exp_u20>(in, out, count);
    case ExpKind::torch_fexp_u20:
      return apply<torch_fexp_u20>(in, out, count);
    case ExpKind::sleef_u10:
      return apply<sleef_u10>(in, out, count);
    case ExpKind::fa4_polynomial:
      return apply<fa4_polynomial>(in, out, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {

ExpKernel exp_kernel(SimdLevel level) {
  constexpr LevelFunctions<ExpKernel> kernels KVSIM_AT_EACH_LEVEL(exponentials);
  return function_or_scalar(level, kernels);
}

}  // namespace kvsim::engine
#endif  // HWY_ONCE
