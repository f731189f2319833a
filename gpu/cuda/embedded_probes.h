// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>

namespace kvsim::gpu {

/// The image of probes.cu that this build has; empty where it was built without nvcc.
[[nodiscard]] std::span<const std::byte> embedded_probes();

}  // namespace kvsim::gpu
