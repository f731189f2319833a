// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "cli/options.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// What --rope and --setting say: where the decoder's RoPE factors come from.
struct GivenRope {
  std::string name;     ///< "torch-cpu"; empty: the device's kernel makes them
  std::string setting;  ///< of libtorch; empty with a kernel
  RopeSource source;    ///< empty with a kernel
};

/// Reads them, and applies the setting. Errors: another name, --setting without libtorch, a format
/// that it does not have them in (usage); no libtorch (unavailable).
[[nodiscard]] Result<GivenRope> given_rope(const ParsedOptions& options, const DecoderShape& shape,
                                           const softfloat::Format& storage);

}  // namespace kvsim
