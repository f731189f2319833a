// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string_view>

#include "gpu/backend.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// OpenBLAS through its C interface, in binary32: dot, gemv, gemm and linear (gemm with the weights
/// transposed, without a bias). Attribute `layout` of all but dot: "row" or "column", how the
/// matrices lie in memory when the library gets them. `path` names a shared library of the user's
/// own; empty: Debian's pthread build, else what the system calls libopenblas.
///
/// Errors (unavailable): no such library, or one that lacks a function.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_openblas_backend(std::string_view path);

/// The same of BLIS.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_blis_backend(std::string_view path);

}  // namespace kvsim::gpu
