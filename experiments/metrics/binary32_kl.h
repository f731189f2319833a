// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>

#include "softfloat/result.h"

/// The divergence as it comes out where it is computed in binary32: to show what of a small one is
/// the evaluation.
namespace kvsim::metrics {

/// Σ p (log p − log q) of the softmaxes of two lists of logits, every operation rounded to binary32
/// and sums in order: log p = (z − largest) − log Σ e^(z − largest), p = e^(log p), as
/// log_softmax(), exp() and a loop do it; exponentials and logarithms within one unit. Differences
/// of rounding errors of some 10^−7 remain, with either sign, however close the lists are; equal
/// lists give 0. Errors (usage): those of kvsim::divergence().
[[nodiscard]] Result<double> kl_in_binary32(std::span<const double> p_logits,
                                            std::span<const double> q_logits);

}  // namespace kvsim::metrics
