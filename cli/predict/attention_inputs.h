// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/options.h"
#include "cli/output.h"
#include "sim/attention_shape.h"
#include "sim/predict/orders.h"
#include "softfloat/formats.h"

namespace kvsim {

/// What `kvsim predict` replays attention on: synthetic values or those of a file.
struct GivenAttention {
  AttentionShape shape;
  const softfloat::NamedFormat* storage = nullptr;
  AttentionValues values;
  Json description;    ///< the members of JSON's `input` that say where the values come from
  std::string source;  ///< the same for people: "gaussian, seed 1"
};

/// Reads --head-dim, --gqa, --kv-heads, --heads, --kv-len, --query-len, --format, --input, --seed
/// and --tensors. With --tensors the sizes and the format are the file's; an option that says
/// otherwise is an error. Errors: usage (a size, a name, sizes that do not fit, a tensor's shape
/// or a value that is not finite) and file (see load_attention).
[[nodiscard]] Result<GivenAttention> given_attention(const ParsedOptions& options);

}  // namespace kvsim
