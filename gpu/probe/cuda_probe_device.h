// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "gpu/cuda_device.h"
#include "gpu/probe/probe_device.h"

namespace kvsim::gpu {

/// The first NVIDIA GPU, with the kernels of gpu/cuda/probes.cu, which `image` holds. Errors
/// (unavailable): no GPU, no image, or none for this device.
[[nodiscard]] Result<std::unique_ptr<ProbeDevice>> make_cuda_probe_device(
    const CudaLibraries& libraries, std::span<const std::byte> image);

}  // namespace kvsim::gpu
