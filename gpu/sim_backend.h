// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string_view>

#include "gpu/backend.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The simulator itself as a back end: the ground truth for whatever observes back ends.
///
/// Without a kernel: linear, matmul, gemm, bmm, dot, gemv, sum and mean in the order that the call
/// states. Attributes: `order` (text of sim/order.h; "sequential"), `product` (rounded, fused or
/// exact; "rounded"), `accumulator` and `output` (names of formats; binary32 and that of the
/// inputs). A bias is added to the sum in the accumulator. mean divides the sum by n in the
/// accumulator, which must be binary32.
///
/// With the name of a row of a kernel table, what that row computes: a linear kernel gives linear,
/// matmul, gemm, bmm, dot and gemv (attributes `output`, `multiprocessors`); an attention kernel
/// sdpa (`causal`, `scale`, `splits`, `split-size`; a causal query i of Q sees the keys up to L − Q
/// + i); a norm kernel rms-norm or layer-norm (`eps`); a softmax kernel softmax or log-softmax; an
/// activation kernel its function.
///
/// Errors (usage): a name that no table has.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_sim_backend(std::string_view kernel);

}  // namespace kvsim::gpu
