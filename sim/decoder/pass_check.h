// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/decoder/incremental.h"

namespace kvsim::decoder {

/// Rows first … end − 1 of a pass.
struct ComputedRows {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// Whether a hidden state can be replaced. Errors (usage).
[[nodiscard]] Result<bool> check_replacement(const DecoderShape& shape,
                                             const softfloat::Format& activations,
                                             ComputedRows rows,
                                             const HiddenReplacement& replacement);

/// Whether a pass can be what it says: the errors of IncrementalDecoder::pass() that do not come
/// from kernels.
[[nodiscard]] Result<bool> check_pass(const DecoderShape& shape, const DecoderFormats& formats,
                                      const KvCache& cache, const DecoderPass& pass);

}  // namespace kvsim::decoder
