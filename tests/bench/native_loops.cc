// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/bench/native_loops.h"

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
#define KVSIM_NATIVE_LOOP(NAME, TARGET, VECTOR, LANES, VECTORS, ZERO, SET1, LOAD, STORE, STEP) \
  __attribute__((target(TARGET))) void NAME(const float* a, const float* b, std::int64_t rows, \
                                            std::int64_t terms, std::int64_t columns,          \
                                            float* out) {                                      \
    for (std::int64_t i = 0; i < rows; i += 4) {                                               \
      for (std::int64_t j = 0; j < columns; j += (LANES) * (VECTORS)) {                        \
        VECTOR sum[4][VECTORS];                                                                \
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; ++r) {                                  \
          _Pragma("GCC unroll 4") for (int v = 0; v < (VECTORS); ++v) sum[r][v] = ZERO();      \
        }                                                                                      \
        for (std::int64_t k = 0; k < terms; ++k) {                                             \
          VECTOR x[VECTORS];                                                                   \
          _Pragma("GCC unroll 4") for (int v = 0; v < (VECTORS); ++v) {                        \
            x[v] = LOAD(b + k * columns + j + v * (LANES));                                    \
          }                                                                                    \
          _Pragma("GCC unroll 4") for (int r = 0; r < 4; ++r) {                                \
            const VECTOR factor = SET1(a[(i + r) * terms + k]);                                \
            _Pragma("GCC unroll 4") for (int v = 0; v < (VECTORS); ++v) {                      \
              sum[r][v] = STEP(factor, x[v], sum[r][v]);                                       \
            }                                                                                  \
          }                                                                                    \
        }                                                                                      \
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; ++r) {                                  \
          _Pragma("GCC unroll 4") for (int v = 0; v < (VECTORS); ++v) {                        \
            STORE(out + (i + r) * columns + j + v * (LANES), sum[r][v]);                       \
          }                                                                                    \
        }                                                                                      \
      }                                                                                        \
    }                                                                                          \
  }

#define KVSIM_ROUNDED_256(A, B, SUM) _mm256_add_ps(SUM, _mm256_mul_ps(A, B))
#define KVSIM_ROUNDED_512(A, B, SUM) _mm512_add_ps(SUM, _mm512_mul_ps(A, B))
#define KVSIM_NATIVE_256(NAME, VECTORS, STEP)                                                \
  KVSIM_NATIVE_LOOP(NAME, "avx2,fma", __m256, 8, VECTORS, _mm256_setzero_ps, _mm256_set1_ps, \
                    _mm256_loadu_ps, _mm256_storeu_ps, STEP)
#define KVSIM_NATIVE_512(NAME, VECTORS, STEP)                                                \
  KVSIM_NATIVE_LOOP(NAME, "avx512f", __m512, 16, VECTORS, _mm512_setzero_ps, _mm512_set1_ps, \
                    _mm512_loadu_ps, _mm512_storeu_ps, STEP)

KVSIM_NATIVE_256(fused_256_4, 4, _mm256_fmadd_ps)
KVSIM_NATIVE_256(fused_256_2, 2, _mm256_fmadd_ps)
KVSIM_NATIVE_512(fused_512_4, 4, _mm512_fmadd_ps)
KVSIM_NATIVE_256(rounded_256_4, 4, KVSIM_ROUNDED_256)
KVSIM_NATIVE_256(rounded_256_2, 2, KVSIM_ROUNDED_256)
KVSIM_NATIVE_512(rounded_512_4, 4, KVSIM_ROUNDED_512)

}  // namespace

std::span<const NativeLoop> native_loops() {
  static const std::vector<NativeLoop> loops = [] {
    std::vector<NativeLoop> list;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      list.push_back({"native FMA, 256 bits, 4 × 4", "avx2", true, 4, 32, fused_256_4});
      list.push_back({"native FMA, 256 bits, 4 × 2", "avx2", true, 4, 16, fused_256_2});
      list.push_back({"native × and +, 256 bits, 4 × 4", "avx2", false, 4, 32, rounded_256_4});
      list.push_back({"native × and +, 256 bits, 4 × 2", "avx2", false, 4, 16, rounded_256_2});
    }
    if (__builtin_cpu_supports("avx512f")) {
      list.push_back({"native FMA, 512 bits, 4 × 4", "avx512", true, 4, 64, fused_512_4});
      list.push_back({"native × and +, 512 bits, 4 × 4", "avx512", false, 4, 64, rounded_512_4});
    }
    return list;
  }();
  return loops;
}

#else

std::span<const NativeLoop> native_loops() { return {}; }

#endif

}  // namespace kvsim::bench
