// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "gpu/backend.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/reveal.h"
#include "softfloat/result.h"

namespace kvsim {

/// `--sweep m=1..64`.
struct SweepRequest {
  std::string text;
  std::string name;  ///< the size that changes: m, n or k; of sdpa m (queries) or kv-len
  std::int64_t first = 1;
  std::int64_t last = 1;
};

/// What `kvsim reveal` was asked for.
struct RevealRequest {
  std::unique_ptr<gpu::Backend> backend;
  gpu::ReductionShape shape;
  gpu::RevealOptions options;
  std::int64_t threads = 1;
  std::optional<SweepRequest> sweep;
  std::vector<std::int64_t> same_row;  ///< numbers of rows of --same-row; empty: not asked for
  std::optional<std::string> svg;      ///< file of the drawing
  std::optional<std::string> save;     ///< name of a row in the user's kernel file; not taken there
};

/// `--sweep`, of one of these sizes; nothing where it is not given.
[[nodiscard]] Result<std::optional<SweepRequest>> sweep_option(
    const ParsedOptions& options, std::span<const std::string_view> names);

/// `--save`: nothing where it is not given. A name that cannot be taken is refused before anything
/// runs.
[[nodiscard]] Result<std::optional<std::string>> save_option(const ParsedOptions& options);

/// `--attribute KEY=VALUE`, all of them.
[[nodiscard]] Result<std::map<std::string, std::string>> attributes_option(
    const ParsedOptions& options);

/// Applies `--setting` and makes `--backend` with so many threads.
[[nodiscard]] Result<std::unique_ptr<gpu::Backend>> backend_option(const ParsedOptions& options,
                                                                   std::int64_t threads);

/// Reads the options, applies the setting and makes the back end.
[[nodiscard]] Result<RevealRequest> reveal_request(const ParsedOptions& options);

}  // namespace kvsim
