// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "gpu/backend.h"

namespace kvsim::gpu {

/// The CPU that runs the program.
struct HostCpu {
  std::string vendor;    ///< "AuthenticAMD", "GenuineIntel"; "unknown" where there is no CPUID
  std::string model;     ///< the brand text
  std::string features;  ///< the instruction sets among those that change kernels, by blanks
};

/// Asked of the CPU once. `features` are those that libraries choose kernels by: avx, avx2, fma,
/// f16c, avx512f, avx512bw, avx512dq, avx512vl, avx512_vnni, avx512_bf16, avx512_fp16, avx_vnni,
/// amx_tile, amx_bf16, amx_int8.
[[nodiscard]] const HostCpu& host_cpu();

/// Adds cpu-vendor, cpu-model and cpu-features.
void add_host_cpu(Fingerprint& fingerprint);

}  // namespace kvsim::gpu
