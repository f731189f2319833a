// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cuda/embedded_probes.h"

#ifdef KVSIM_CUDA_PROBES
// The bytes of a file between two symbols.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".hidden kvsim_cuda_probes_begin\n"
    ".global kvsim_cuda_probes_begin\n"
    "kvsim_cuda_probes_begin:\n"
    ".incbin \"" KVSIM_CUDA_PROBES
    "\"\n"
    ".hidden kvsim_cuda_probes_end\n"
    ".global kvsim_cuda_probes_end\n"
    "kvsim_cuda_probes_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const std::byte kvsim_cuda_probes_begin;
extern const std::byte kvsim_cuda_probes_end;
}
#endif

namespace kvsim::gpu {

std::span<const std::byte> embedded_probes() {
#ifdef KVSIM_CUDA_PROBES
  return {&kvsim_cuda_probes_begin, &kvsim_cuda_probes_end};
#else
  return {};
#endif
}

}  // namespace kvsim::gpu
