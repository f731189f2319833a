// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// One instruction of a matrix unit for each row of operands. Every row of A is the same, so is
/// every column of B and every element of C, so that every element of D is one result: the host
/// checks that its place in the tile does not matter. Fragments as in NVIDIA's "PTX ISA" 9.0,
/// sections on mma, mma with block scaling and wgmma: K fills 32 bytes, and a register of A or B
/// holds the bytes from 4 t on, or from 16 + 4 t on, with t the lane modulo 4. Of f64 a register of
/// A or B holds element t, 4 + t, 8 + t ….
///
/// a and b: 8 words for each row; f64 with K = 16: 32. c: one word, a binary16 in its lower half; a
/// binary64: two. d: the tile of each row, by rows, as many words for each element. a_scales and
/// b_scales: one word for each row, the scale of the first block in the lowest byte.

#include <cstdint>

// What an architecture does not have is no kernel of its image; the host does not ask for it.
#if __CUDA_ARCH__ >= 890
#define KVSIM_HAS_FP8 1
#else
#define KVSIM_HAS_FP8 0
#endif
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ == 1200
#define KVSIM_HAS_SCALES 1
#else
#define KVSIM_HAS_SCALES 0
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define KVSIM_HAS_WGMMA 1
#else
#define KVSIM_HAS_WGMMA 0
#endif

namespace {

struct Fragments {
  std::uint32_t a[4];
  std::uint32_t b[2];
};

__device__ Fragments load(const std::uint32_t* a, const std::uint32_t* b) {
  const std::uint32_t* const row_a = a + 8 * blockIdx.x;
  const std::uint32_t* const row_b = b + 8 * blockIdx.x;
  const unsigned t = threadIdx.x % 4;
  return {{row_a[t], row_a[t], row_a[4 + t], row_a[4 + t]}, {row_b[t], row_b[4 + t]}};
}

/// Both halves of a word.
__device__ std::uint32_t twice(std::uint32_t half) { return half | half << 16; }

/// Columns 2 t and 2 t + 1 of rows g and g + 8 of the warp's 16 rows.
__device__ void store(std::uint32_t* d, unsigned rows, const std::uint32_t (&value)[4]) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned first = 16 * (threadIdx.x / 32) + lane / 4;
  std::uint32_t* const tile = d + 8 * rows * blockIdx.x;
  for (unsigned i = 0; i < 4; ++i) {
    tile[8 * (first + 8 * (i / 2)) + 2 * (lane % 4) + i % 2] = value[i];
  }
}

/// The same of a result of two registers of two binary16 each.
__device__ void store_halves(std::uint32_t* d, unsigned rows, const std::uint32_t (&value)[2]) {
  store(d, rows, {value[0] & 0xffff, value[0] >> 16, value[1] & 0xffff, value[1] >> 16});
}

/// The lane's columns of its rows of results in binary64: of row g, and of g + 8 where there are
/// four.
template <unsigned count>
__device__ void store(std::uint32_t* d, const double (&value)[count]) {
  const unsigned lane = threadIdx.x % 32;
  double* const tile = reinterpret_cast<double*>(d) + 32 * count * blockIdx.x;
  for (unsigned i = 0; i < count; ++i) {
    tile[8 * (lane / 4 + 8 * (i / 2)) + 2 * (lane % 4) + i % 2] = value[i];
  }
}

#if KVSIM_HAS_WGMMA
/// The columns of B in shared memory, and their descriptor: no swizzle, two core matrices of 8
/// columns by 16 bytes, 128 bytes apart.
__device__ std::uint64_t shared_columns(std::uint32_t* columns, const std::uint32_t* b) {
  if (threadIdx.x < 64) {
    const unsigned word = threadIdx.x % 4;
    const unsigned matrix = threadIdx.x / 32;
    columns[threadIdx.x] = b[8 * blockIdx.x + 4 * matrix + word];
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(columns));
  constexpr std::uint64_t apart = 128 >> 4;
  return (address & 0x3ffff) >> 4 | apart << 16 | apart << 32;
}
#endif

}  // namespace

#define KVSIM_ARGUMENTS                                                     \
  const std::uint32_t* __restrict__ a, const std::uint32_t* __restrict__ b, \
      const std::uint32_t* __restrict__ c, std::uint32_t* __restrict__ d

#define KVSIM_MMA_F32(name, shape, type)                                                         \
  extern "C" __global__ void name(KVSIM_ARGUMENTS) {                                             \
    const Fragments f = load(a, b);                                                              \
    const std::uint32_t addend = c[blockIdx.x];                                                  \
    std::uint32_t r[4];                                                                          \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type                         \
                 ".f32 "                                                                         \
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"                        \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]), \
                   "r"(addend));                                                                 \
    store(d, 16, r);                                                                             \
  }

#define KVSIM_MMA_F16(name, shape, type)                                                         \
  extern "C" __global__ void name(KVSIM_ARGUMENTS) {                                             \
    const Fragments f = load(a, b);                                                              \
    const std::uint32_t addend = twice(c[blockIdx.x]);                                           \
    std::uint32_t r[2];                                                                          \
    asm volatile("mma.sync.aligned." shape ".row.col.f16." type "." type                         \
                 ".f16 "                                                                         \
                 "{%0,%1},{%2,%3,%4,%5},{%6,%7},{%8,%8};"                                        \
                 : "=r"(r[0]), "=r"(r[1])                                                        \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]), \
                   "r"(addend));                                                                 \
    store_halves(d, 16, r);                                                                      \
  }

KVSIM_MMA_F32(kvsim_mma_f16_f32, "m16n8k16", "f16")
KVSIM_MMA_F32(kvsim_mma_bf16_f32, "m16n8k16", "bf16")
KVSIM_MMA_F32(kvsim_mma_tf32_f32, "m16n8k8", "tf32")
KVSIM_MMA_F16(kvsim_mma_f16_f16, "m16n8k16", "f16")
#if KVSIM_HAS_SCALES
#define KVSIM_8BIT "kind::f8f6f4.m16n8k32"
KVSIM_MMA_F32(kvsim_mma_e3m2_f32, KVSIM_8BIT, "e3m2")
KVSIM_MMA_F32(kvsim_mma_e2m3_f32, KVSIM_8BIT, "e2m3")
KVSIM_MMA_F32(kvsim_mma_e2m1_f32, KVSIM_8BIT, "e2m1")
KVSIM_MMA_F16(kvsim_mma_e3m2_f16, KVSIM_8BIT, "e3m2")
KVSIM_MMA_F16(kvsim_mma_e2m3_f16, KVSIM_8BIT, "e2m3")
KVSIM_MMA_F16(kvsim_mma_e2m1_f16, KVSIM_8BIT, "e2m1")
#else
#define KVSIM_8BIT "m16n8k32"
#endif
#if KVSIM_HAS_FP8
KVSIM_MMA_F32(kvsim_mma_e4m3_f32, KVSIM_8BIT, "e4m3")
KVSIM_MMA_F32(kvsim_mma_e5m2_f32, KVSIM_8BIT, "e5m2")
KVSIM_MMA_F16(kvsim_mma_e4m3_f16, KVSIM_8BIT, "e4m3")
KVSIM_MMA_F16(kvsim_mma_e5m2_f16, KVSIM_8BIT, "e5m2")
#endif

extern "C" __global__ void kvsim_mma_f64_f64(KVSIM_ARGUMENTS) {
  const unsigned t = threadIdx.x % 4;
  const double addend = reinterpret_cast<const double*>(c)[blockIdx.x];
#if __CUDA_ARCH__ >= 900
  const double* const x = reinterpret_cast<const double*>(a) + 16 * blockIdx.x;
  const double* const y = reinterpret_cast<const double*>(b) + 16 * blockIdx.x;
  double r[4];
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
      "{%0,%1,%2,%3},{%4,%4,%5,%5,%6,%6,%7,%7},{%8,%9,%10,%11},{%12,%12,%12,%12};"
      : "=d"(r[0]), "=d"(r[1]), "=d"(r[2]), "=d"(r[3])
      : "d"(x[t]), "d"(x[4 + t]), "d"(x[8 + t]), "d"(x[12 + t]), "d"(y[t]), "d"(y[4 + t]),
        "d"(y[8 + t]), "d"(y[12 + t]), "d"(addend));
#else
  const double x = reinterpret_cast<const double*>(a)[4 * blockIdx.x + t];
  const double y = reinterpret_cast<const double*>(b)[4 * blockIdx.x + t];
  double r[2];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%4,%4};"
               : "=d"(r[0]), "=d"(r[1])
               : "d"(x), "d"(y), "d"(addend));
#endif
  store(d, r);
}

#if KVSIM_HAS_SCALES

/// Every row of A and column of B has the same scales, so that it does not matter which lanes of
/// four the instruction takes them from.
#define KVSIM_SCALED(name, kind, type, scale)                                                    \
  extern "C" __global__ void name(KVSIM_ARGUMENTS, const std::uint32_t* __restrict__ a_scales,   \
                                  const std::uint32_t* __restrict__ b_scales) {                  \
    const Fragments f = load(a, b);                                                              \
    const std::uint32_t addend = c[blockIdx.x];                                                  \
    std::uint32_t r[4];                                                                          \
    asm volatile("mma.sync.aligned.kind::" kind ".row.col.f32." type "." type ".f32." scale      \
                 " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10},"                       \
                 "{%11},{0,0},{%12},{0,0};"                                                      \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]), \
                   "r"(addend), "r"(a_scales[blockIdx.x]), "r"(b_scales[blockIdx.x]));           \
    store(d, 16, r);                                                                             \
  }

#define KVSIM_MX "mxf8f6f4.block_scale.scale_vec::1X.m16n8k32"
KVSIM_SCALED(kvsim_mma_mx_e4m3_f32, KVSIM_MX, "e4m3", "ue8m0")
KVSIM_SCALED(kvsim_mma_mx_e5m2_f32, KVSIM_MX, "e5m2", "ue8m0")
KVSIM_SCALED(kvsim_mma_mx_e3m2_f32, KVSIM_MX, "e3m2", "ue8m0")
KVSIM_SCALED(kvsim_mma_mx_e2m3_f32, KVSIM_MX, "e2m3", "ue8m0")
KVSIM_SCALED(kvsim_mma_mx_e2m1_f32, KVSIM_MX, "e2m1", "ue8m0")
KVSIM_SCALED(kvsim_mma_mxf4_f32, "mxf4.block_scale.scale_vec::2X.m16n8k64", "e2m1", "ue8m0")
KVSIM_SCALED(kvsim_mma_nvf4_f32, "mxf4nvf4.block_scale.scale_vec::4X.m16n8k64", "e2m1", "ue4m3")

#endif

#if KVSIM_HAS_WGMMA

#define KVSIM_WGMMA_WAIT \
  asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory")

/// `tail`: the immediates behind scale-d, which 16-bit types have one more of.
#define KVSIM_WGMMA_F32(name, shape, type, tail)                                         \
  extern "C" __global__ void name(KVSIM_ARGUMENTS) {                                     \
    __shared__ alignas(128) std::uint32_t columns[64];                                   \
    const std::uint64_t descriptor = shared_columns(columns, b);                         \
    const Fragments f = load(a, b);                                                      \
    const std::uint32_t addend = c[blockIdx.x];                                          \
    std::uint32_t r[4] = {addend, addend, addend, addend};                               \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                              \
    asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." type "." type             \
                 " {%0,%1,%2,%3},{%4,%5,%6,%7},%8,1," tail ";"                           \
                 : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3])                        \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "l"(descriptor)); \
    KVSIM_WGMMA_WAIT;                                                                    \
    store(d, 64, r);                                                                     \
  }

#define KVSIM_WGMMA_F16(name, shape, type, tail)                                         \
  extern "C" __global__ void name(KVSIM_ARGUMENTS) {                                     \
    __shared__ alignas(128) std::uint32_t columns[64];                                   \
    const std::uint64_t descriptor = shared_columns(columns, b);                         \
    const Fragments f = load(a, b);                                                      \
    const std::uint32_t addend = twice(c[blockIdx.x]);                                   \
    std::uint32_t r[2] = {addend, addend};                                               \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                              \
    asm volatile("wgmma.mma_async.sync.aligned." shape ".f16." type "." type             \
                 " {%0,%1},{%2,%3,%4,%5},%6,1," tail ";"                                 \
                 : "+r"(r[0]), "+r"(r[1])                                                \
                 : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "l"(descriptor)); \
    KVSIM_WGMMA_WAIT;                                                                    \
    store_halves(d, 64, r);                                                              \
  }

KVSIM_WGMMA_F32(kvsim_wgmma_f16_f32, "m64n8k16", "f16", "1,1,0")
KVSIM_WGMMA_F32(kvsim_wgmma_bf16_f32, "m64n8k16", "bf16", "1,1,0")
KVSIM_WGMMA_F32(kvsim_wgmma_tf32_f32, "m64n8k8", "tf32", "1,1")
KVSIM_WGMMA_F32(kvsim_wgmma_e4m3_f32, "m64n8k32", "e4m3", "1,1")
KVSIM_WGMMA_F32(kvsim_wgmma_e5m2_f32, "m64n8k32", "e5m2", "1,1")
KVSIM_WGMMA_F16(kvsim_wgmma_f16_f16, "m64n8k16", "f16", "1,1,0")
KVSIM_WGMMA_F16(kvsim_wgmma_e4m3_f16, "m64n8k32", "e4m3", "1,1")
KVSIM_WGMMA_F16(kvsim_wgmma_e5m2_f16, "m64n8k32", "e5m2", "1,1")

#endif

// Approximations of functions of a binary32, each by its one instruction.

#define KVSIM_ELEMENTARY(name, instruction)                                           \
  extern "C" __global__ void name(const float* __restrict__ x, float* __restrict__ y, \
                                  unsigned count) {                                   \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                         \
    if (i >= count) return;                                                           \
    float result;                                                                     \
    asm volatile(instruction " %0, %1;" : "=f"(result) : "f"(x[i]));                  \
    y[i] = result;                                                                    \
  }

KVSIM_ELEMENTARY(kvsim_ex2, "ex2.approx.ftz.f32")
KVSIM_ELEMENTARY(kvsim_rcp, "rcp.approx.ftz.f32")
KVSIM_ELEMENTARY(kvsim_rsqrt, "rsqrt.approx.ftz.f32")
KVSIM_ELEMENTARY(kvsim_lg2, "lg2.approx.ftz.f32")
