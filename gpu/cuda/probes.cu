// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// One instruction of a matrix unit for each row of operands. Every row of A is the same, so is
/// every column of B and every element of C, so that every element of D is one result: the host
/// checks that its place in the tile does not matter. Fragments as in NVIDIA's "PTX ISA" 9.0,
/// sections on mma and wgmma: in each of these instructions K fills 32 bytes, and a register of A
/// or B holds the bytes from 4 t on, or from 16 + 4 t on, with t the lane modulo 4.
///
/// a and b: 8 words for each row. c: one word, a binary16 in its lower half. d: the tile of each
/// row, by rows, one word for each element.

#include <cstdint>

// What an architecture does not have is no kernel of its image; the host does not ask for it.
#if __CUDA_ARCH__ >= 890
#define KVSIM_HAS_FP8 1
#else
#define KVSIM_HAS_FP8 0
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
#if KVSIM_HAS_FP8
KVSIM_MMA_F32(kvsim_mma_e4m3_f32, "m16n8k32", "e4m3")
KVSIM_MMA_F32(kvsim_mma_e5m2_f32, "m16n8k32", "e5m2")
KVSIM_MMA_F16(kvsim_mma_e4m3_f16, "m16n8k32", "e4m3")
KVSIM_MMA_F16(kvsim_mma_e5m2_f16, "m16n8k32", "e5m2")
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
