// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "model/checkpoint.h"
#include "sim/decoder/weights_view.h"
#include "softfloat/result.h"

namespace kvsim {

/// The weights of a checkpoint as a decoder reads them, where they stand in the mapped files; the
/// checkpoint must outlive them. A tied model has no output matrix of its own. Reads every weight
/// once: an error (file) names one that holds NaN or an infinity, and where.
[[nodiscard]] Result<DecoderWeights> decoder_weights(const Checkpoint& checkpoint);

}  // namespace kvsim
