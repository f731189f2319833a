// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/bench/bare_loops.h"

#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// g++ 12 takes the deliberately undefined operands inside its own intrinsics for a mistake of ours.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace kvsim::bench {

#if defined(__x86_64__)
namespace {

// Macros, because a template cannot carry a target attribute under both compilers.
#define KVSIM_BENCH_LOOP(NAME, TARGET, VECTOR, LANES, COUNT, SET1, LOAD, STORE, MUL, ADD, HALF)   \
  __attribute__((target(TARGET))) void NAME(const float* a, const float* b, std::int64_t terms,   \
                                            std::int64_t columns, float* out) {                   \
    for (std::int64_t j = 0; j < columns; j += LANES * COUNT) {                                   \
      VECTOR sum[COUNT];                                                                          \
      _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; ++v) {                                   \
        sum[v] = HALF(MUL(SET1(a[0]), LOAD(b + j + v * LANES)));                                  \
      }                                                                                           \
      for (std::int64_t k = 1; k < terms; ++k) {                                                  \
        const VECTOR factor = SET1(a[k]);                                                         \
        _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; ++v) {                                 \
          const VECTOR product = HALF(MUL(factor, LOAD(b + k * columns + j + v * LANES)));        \
          sum[v] = HALF(ADD(sum[v], product));                                                    \
        }                                                                                         \
      }                                                                                           \
      _Pragma("GCC unroll 8") for (int v = 0; v < COUNT; ++v) STORE(out + j + v * LANES, sum[v]); \
    }                                                                                             \
  }

#define KVSIM_BENCH_HALF_256(X) _mm256_cvtph_ps(_mm256_cvtps_ph(X, _MM_FROUND_NO_EXC))
#define KVSIM_BENCH_HALF_512(X) _mm512_cvtph_ps(_mm512_cvtps_ph(X, _MM_FROUND_NO_EXC))
#define KVSIM_BENCH_LOOP_256(COUNT)                                                 \
  KVSIM_BENCH_LOOP(loop_256_##COUNT, "avx2,f16c", __m256, 8, COUNT, _mm256_set1_ps, \
                   _mm256_loadu_ps, _mm256_storeu_ps, _mm256_mul_ps, _mm256_add_ps, \
                   KVSIM_BENCH_HALF_256)
#define KVSIM_BENCH_LOOP_512(COUNT)                                                 \
  KVSIM_BENCH_LOOP(loop_512_##COUNT, "avx512f", __m512, 16, COUNT, _mm512_set1_ps,  \
                   _mm512_loadu_ps, _mm512_storeu_ps, _mm512_mul_ps, _mm512_add_ps, \
                   KVSIM_BENCH_HALF_512)

KVSIM_BENCH_LOOP_256(1)
KVSIM_BENCH_LOOP_256(2)
KVSIM_BENCH_LOOP_256(4)
KVSIM_BENCH_LOOP_256(8)
KVSIM_BENCH_LOOP_512(1)
KVSIM_BENCH_LOOP_512(2)
KVSIM_BENCH_LOOP_512(4)
KVSIM_BENCH_LOOP_512(8)

__attribute__((target("avx512fp16"))) void half_loop(const std::uint16_t* a, const std::uint16_t* b,
                                                     std::int64_t terms, std::int64_t columns,
                                                     std::uint16_t* out) {
  for (std::int64_t j = 0; j < columns; j += 128) {
    __m512h sum[4];
    _Pragma("GCC unroll 4") for (int v = 0; v < 4; ++v) {
      const __m512h factor = _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(a[0])));
      sum[v] = _mm512_mul_ph(factor, _mm512_loadu_ph(b + j + v * 32));
    }
    for (std::int64_t k = 1; k < terms; ++k) {
      const __m512h factor = _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(a[k])));
      _Pragma("GCC unroll 4") for (int v = 0; v < 4; ++v) {
        const __m512h product =
            _mm512_mul_ph(factor, _mm512_loadu_ph(b + k * columns + j + v * 32));
        sum[v] = _mm512_add_ph(sum[v], product);
      }
    }
    _Pragma("GCC unroll 4") for (int v = 0; v < 4; ++v) _mm512_storeu_ph(out + j + v * 32, sum[v]);
  }
}

}  // namespace

std::span<const BareLoop> bare_loops() {
  static const std::vector<BareLoop> loops = [] {
    std::vector<BareLoop> list;
    if (__builtin_cpu_supports("avx2")) {
      list.push_back({"bare F16C, 256 bits, 1 vector", "avx2", 8, loop_256_1});
      list.push_back({"bare F16C, 256 bits, 2 vectors", "avx2", 16, loop_256_2});
      list.push_back({"bare F16C, 256 bits, 4 vectors", "avx2", 32, loop_256_4});
      list.push_back({"bare F16C, 256 bits, 8 vectors", "avx2", 64, loop_256_8});
    }
    if (__builtin_cpu_supports("avx512f")) {
      list.push_back({"bare F16C, 512 bits, 1 vector", "avx512", 16, loop_512_1});
      list.push_back({"bare F16C, 512 bits, 2 vectors", "avx512", 32, loop_512_2});
      list.push_back({"bare F16C, 512 bits, 4 vectors", "avx512", 64, loop_512_4});
      list.push_back({"bare F16C, 512 bits, 8 vectors", "avx512", 128, loop_512_8});
    }
    return list;
  }();
  return loops;
}

BareHalfLoop bare_half_loop() { return __builtin_cpu_supports("avx512fp16") ? half_loop : nullptr; }

#else

std::span<const BareLoop> bare_loops() { return {}; }
BareHalfLoop bare_half_loop() { return nullptr; }

#endif

}  // namespace kvsim::bench
