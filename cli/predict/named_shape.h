// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "sim/decoder_shape.h"
#include "softfloat/result.h"

namespace kvsim {

/// Layers of a decoder of which only a layer's sizes are given.
inline constexpr std::int64_t layers_of_sizes = 4;

/// The sizes that --config, --model or options name, before --tensors says otherwise.
struct NamedShape {
  DecoderShape shape;
  std::string source;
  std::string dtype;
  std::vector<std::string> unused;  ///< fields of --config that change no arithmetic
};

/// Reads them. Errors (usage): no source of sizes or two, sizes that do not fit; (file): a
/// configuration that cannot be read.
[[nodiscard]] Result<NamedShape> named_shape(const ParsedOptions& options);

}  // namespace kvsim
