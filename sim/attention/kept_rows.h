// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"

namespace kvsim {

/// Whether every row of a causal layer over m tokens has the same bits in a layer over the same
/// tokens and more, n > m: what the kernel does for a row does then not depend on the keys behind
/// it. Decided from the kernel's row and the sizes alone; no where nothing here shows it. Sizes,
/// mask, storage and launch of both are read, never the numbers.
///
/// Two things are left to the caller. Values behind a row must be finite: their probability is 0,
/// and 0 · ∞ is NaN. And an output that is exactly zero may change its sign.
[[nodiscard]] bool keeps_rows(const AttentionKernel& kernel, const AttentionProblem& shorter,
                              const AttentionProblem& longer);

}  // namespace kvsim
