// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"

namespace kvsim {

/// What fixes the bits of a query's output besides the numbers: "h100-fa3: 4 splits of 128 keys,
/// blocks of 64". Calls with equal texts give equal bits for the same query and keys.
[[nodiscard]] std::string attention_rule(const AttentionKernel& kernel, const AttentionShape& shape,
                                         const AttentionMask& mask, const AttentionLaunch& launch);

}  // namespace kvsim
