// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "run/engine.h"
#include "softfloat/result.h"

/// Taking state from one sequence into another: keys and values of a cache, and hidden states.
namespace kvsim::experiments {

/// first, first + 1, …, first + count − 1.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// Which numbers of a cache.
struct CacheMask {
  bool keys = true;
  bool values = true;
  IndexRange layers;
  IndexRange heads;  ///< of keys and values
  IndexRange rows;   ///< positions

  friend bool operator==(const CacheMask&, const CacheMask&) = default;
};

/// Keys and values of the first `rows` rows, all layers and heads.
[[nodiscard]] CacheMask whole_cache(const StateShape& shape, std::int64_t rows);

/// Puts those numbers of the donor's cache in place of the recipient's. Errors (usage): of
/// EngineSequence::state() and set_state(); caches of another shape or format.
[[nodiscard]] Result<bool> transplant(const EngineSequence& donor, EngineSequence& recipient,
                                      const CacheMask& mask);

/// A sequence that holds the cache of all but the last of its tokens: before a pass over one row.
struct Fork {
  std::unique_ptr<EngineSequence> sequence;
  std::vector<TokenId> tokens;

  [[nodiscard]] std::int64_t cached_rows() const { return std::ssize(tokens) - 1; }
  [[nodiscard]] Result<Fork> copy() const;
  /// The pass over the last token.
  [[nodiscard]] Result<EnginePass> pass(const PassRequest& request);
};

/// What a recipient takes from a donor.
struct StatePatch {
  std::optional<CacheMask> cache;    ///< before the pass
  std::vector<std::int64_t> hidden;  ///< layers behind which the donor's hidden state flows on
};

/// A recipient after the pass with a patch.
struct PatchedPass {
  EnginePass pass;
  Fork fork;  ///< its sequence holds the row of the pass, too
};

/// A copy of the recipient takes the patch from the donor and makes its pass. `donor_pass` is the
/// donor's with its layers' values (PassRequest::layer_values); where the patch has no hidden
/// states it may be empty. Errors of the engine; (usage) a hidden state that donor_pass lacks.
[[nodiscard]] Result<PatchedPass> patched_pass(const Fork& donor, const EnginePass& donor_pass,
                                               const Fork& recipient, const StatePatch& patch);

/// The tokens that a fork whose pass gave `first` goes on with, `first` included: each the one of
/// the largest logit, `count` in all.
[[nodiscard]] Result<std::vector<std::int64_t>> greedy_continuation(Fork& fork, std::int64_t first,
                                                                    std::int64_t count);

}  // namespace kvsim::experiments
