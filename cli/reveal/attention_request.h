// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/reveal/request.h"
#include "gpu/backend.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "softfloat/result.h"

namespace kvsim {

/// What `kvsim reveal --op sdpa` was asked for.
struct AttentionRevealRequest {
  std::unique_ptr<gpu::Backend> backend;
  gpu::AttentionLayer layer;
  gpu::AttentionRevealOptions options;
  std::int64_t threads = 1;
  std::optional<SweepRequest> sweep;
  std::optional<std::string> svg;   ///< file of the drawing
  std::optional<std::string> save;  ///< name of a row in the user's kernel file; not taken there
};

/// Whether `--op` asks for attention. Errors (usage): options of attention with another operator,
/// or options of other operators with attention.
[[nodiscard]] Result<bool> asks_for_attention(const ParsedOptions& options);

/// Reads the options, applies the setting and makes the back end.
[[nodiscard]] Result<AttentionRevealRequest> attention_reveal_request(const ParsedOptions& options);

}  // namespace kvsim
