// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "sim/decoder/row_operators.h"
#include "sim/decoder/weights_view.h"

namespace kvsim::decoder {

/// Whether a pass over rows 0 … after − 1 gives the first `before` of them the bits that they have
/// after a pass over these alone. Where it does, recomputing a sequence from its start with one
/// token more need not compute the others again.
///
/// A row of a layer depends on the number of rows in three places only: in which kernel a linear
/// layer is given and in how it sums, in attention (sim/attention/kept_rows.h), and in an
/// activation that goes through the whole tensor in groups. Norms, RoPE and residual take one row
/// at a time. All are compared for the two sizes; no where one of them differs, with planted
/// defects, and where the dispatch names no kernels. What attention leaves to its caller is left
/// here, too.
[[nodiscard]] bool keeps_rows(const OperatorSetup& setup, const DecoderWeights& weights,
                              std::int64_t before, std::int64_t after);

}  // namespace kvsim::decoder
