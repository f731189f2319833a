// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/decoder/incremental.h"

namespace kvsim::decoder {

/// Whether a pass can be what it says: the errors of IncrementalDecoder::pass() that do not come
/// from kernels.
[[nodiscard]] Result<bool> check_pass(const DecoderShape& shape, const KvCache& cache,
                                      const DecoderPass& pass);

}  // namespace kvsim::decoder
