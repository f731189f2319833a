// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/attention/kernel.h"
#include "sim/decoder/row_operators.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"

namespace kvsim::decoder {

/// The kernels that a dispatch names for a shape, found in their tables; norm and rope as the shape
/// and a planted defect have them.
struct NamedKernels {
  NormKernel norm;
  RopeKernel rope;
  ActivationKernel activation;
  ResidualKernel residual;
  const AttentionKernel* prefill = nullptr;  ///< null with exact arithmetic
  const AttentionKernel* decode = nullptr;
};

/// Errors (usage): a name that is not in its table.
[[nodiscard]] Result<NamedKernels> find_kernels(const OperatorSetup& setup);

/// The name of a dispatch's kernel for an activation.
[[nodiscard]] std::string_view activation_name(const Dispatch& dispatch, GateActivation activation);

}  // namespace kvsim::decoder
