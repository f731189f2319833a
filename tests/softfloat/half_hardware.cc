// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/softfloat/half_hardware.h"

#include <array>
#include <bit>
#include <cmath>
#include <memory>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvsim::oracle {
namespace {

template <class T>
using Table = std::array<T, 65536>;

/// The value of a binary16 code: a hand-written decoder, so that the reference needs nothing else.
float binary16_value(std::uint32_t code) {
  const auto field = static_cast<int>((code >> 10) & 0x1f);
  const auto significand = static_cast<float>(code & 0x3ff);
  float value = 0;
  if (field == 0x1f) {
    value = (code & 0x3ff) != 0 ? NAN : INFINITY;
  } else if (field == 0) {
    value = std::ldexp(significand, -24);
  } else {
    value = std::ldexp(significand + 1024, field - 25);
  }
  return (code & 0x8000) != 0 ? -value : value;
}

float bfloat16_value(std::uint32_t code) { return std::bit_cast<float>(code << 16); }

template <class T, float (*value)(std::uint32_t)>
const Table<T>& values() {
  static const auto table = [] {
    auto t = std::make_unique<Table<T>>();
    for (std::uint32_t i = 0; i < 65536; ++i) (*t)[i] = static_cast<T>(value(i));
    return t;
  }();
  return *table;
}

/// binary32 to binary16 on integers: keep 11 bits, or fewer below 2^-14, and look at the rest.
std::uint16_t to_binary16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7c00);
  const auto field = static_cast<int>(magnitude >> 23);
  const std::uint64_t significand = (magnitude & 0x7fffff) | (field != 0 ? 0x800000U : 0U);
  const int drop = field > 112 ? 13 : 126 - field;  // 2^-24 is the unit of field 112 and below
  if (drop > 40) return sign;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  std::uint64_t kept = significand >> drop;
  if (rest > half || (rest == half && kept % 2 != 0)) ++kept;
  const std::uint64_t code =
      field > 112 ? kept + (static_cast<std::uint64_t>(field - 113) << 10) : kept;
  return static_cast<std::uint16_t>(sign | code);
}

template <bool multiply>
void binary16_row_integers(std::uint16_t a, std::uint16_t* row) {
  const auto& table = values<float, binary16_value>();
  const float x = table[a];
  for (std::size_t b = 0; b < 65536; ++b) {
    row[b] = to_binary16(multiply ? x * table[b] : x + table[b]);
  }
}

/// Ties to even by the carry of 0x7fff or 0x8000; binary32's infinity and NaN keep their class.
std::uint16_t to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(x != x ? 0x7fc0 : rounded);
}

void bfloat16_add(std::uint16_t a, std::uint16_t* row) {
  const auto& table = values<float, bfloat16_value>();
  const float x = table[a];
  for (std::size_t b = 0; b < 65536; ++b) row[b] = to_bfloat16(x + table[b]);
}

void bfloat16_mul(std::uint16_t a, std::uint16_t* row) {
  const auto& table = values<double, bfloat16_value>();
  const double x = table[a];
  for (std::size_t b = 0; b < 65536; ++b) {
    const double product = x * table[b];  // exact
    const double magnitude = std::fabs(product);
    const std::uint16_t normal = to_bfloat16(static_cast<float>(product));
    // Below 2^-126: in units of 2^-133, rounded to an integer by the addition of 2^52.
    const double shifted = (magnitude < 0x1p-126 ? magnitude : 0.0) * 0x1p133 + 0x1p52;
    const auto units = static_cast<std::uint16_t>(std::bit_cast<std::uint64_t>(shifted));
    const auto sign =
        static_cast<std::uint16_t>((std::bit_cast<std::uint64_t>(product) >> 48) & 0x8000);
    row[b] = magnitude < 0x1p-126 ? static_cast<std::uint16_t>(sign | units) : normal;
  }
}

#if defined(__x86_64__)

template <bool multiply>
__attribute__((target("avx,f16c"))) void binary16_row_f16c(std::uint16_t a, std::uint16_t* row) {
  const auto& table = values<float, binary16_value>();
  const __m256 x = _mm256_set1_ps(table[a]);
  for (std::size_t b = 0; b < 65536; b += 8) {
    const __m256 y = _mm256_loadu_ps(&table[b]);
    const __m256 z = multiply ? _mm256_mul_ps(x, y) : _mm256_add_ps(x, y);
    const __m128i code = _mm256_cvtps_ph(z, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + b), code);
  }
}

template <bool multiply>
__attribute__((target("avx512f,avx512bw,avx512fp16"))) void binary16_row_fp16(std::uint16_t a,
                                                                              std::uint16_t* row) {
  alignas(64) std::array<std::uint16_t, 32> codes{};
  for (std::size_t i = 0; i < 32; ++i) codes[i] = static_cast<std::uint16_t>(i);
  const __m512h x = _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(a)));
  __m512i y = _mm512_load_si512(codes.data());
  for (std::size_t b = 0; b < 65536; b += 32) {
    const __m512h h = _mm512_castsi512_ph(y);
    const __m512h z = multiply ? _mm512_mul_ph(x, h) : _mm512_add_ph(x, h);
    _mm512_storeu_si512(row + b, _mm512_castph_si512(z));
    y = _mm512_add_epi16(y, _mm512_set1_epi16(32));
  }
}

bool has_fp16() {
  // __builtin_cpu_supports does not know "avx512fp16" in g++ 12: CPUID leaf 7, EDX bit 23.
  unsigned a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return __builtin_cpu_supports("avx512bw") && ((d >> 23) & 1) != 0;
}

bool has_f16c() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c"); }

template <bool multiply>
RowFunction binary16_row() {
  if (has_fp16()) return binary16_row_fp16<multiply>;
  if (has_f16c()) return binary16_row_f16c<multiply>;
  return binary16_row_integers<multiply>;
}

#else

bool has_fp16() { return false; }
bool has_f16c() { return false; }

template <bool multiply>
RowFunction binary16_row() {
  return binary16_row_integers<multiply>;
}

#endif

}  // namespace

RowFunction binary16_add_row() { return binary16_row<false>(); }
RowFunction binary16_mul_row() { return binary16_row<true>(); }
RowFunction bfloat16_add_row() { return bfloat16_add; }
RowFunction bfloat16_mul_row() { return bfloat16_mul; }

const char* binary16_method() {
  if (has_fp16()) return "avx512fp16";
  return has_f16c() ? "f16c" : "integers";
}

}  // namespace kvsim::oracle
