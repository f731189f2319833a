// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/transplant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "experiments/protocol/pair_text.h"

namespace kvsim::experiments {
namespace {

/// One part of one layer. Whole rows are read and written; heads that stay keep their numbers.
Result<bool> transplant_block(const EngineSequence& donor, EngineSequence& recipient,
                              const StateBlock& block, const IndexRange& heads) {
  const Result<std::vector<double>> theirs = donor.state(block);
  if (!theirs) return theirs.error();
  const StateShape shape = recipient.state_shape();
  if (heads == IndexRange{0, shape.kv_heads}) return recipient.set_state(block, *theirs);
  Result<std::vector<double>> ours = recipient.state(block);
  if (!ours) return ours.error();
  const std::int64_t size = block.rows * shape.head_dim;
  std::copy_n(theirs->begin() + heads.first * size, heads.count * size,
              ours->begin() + heads.first * size);
  return recipient.set_state(block, *ours);
}

/// The hidden state behind a layer; null where there is none.
const StateValues* hidden_of(const EnginePass& pass, std::int64_t layer) {
  const auto found = std::ranges::find_if(pass.values, [&](const StateValues& values) {
    return values.operation == "hidden" && values.layer == layer;
  });
  return found == pass.values.end() ? nullptr : &*found;
}

bool is_within(const IndexRange& range, std::int64_t count) {
  return range.first >= 0 && range.count >= 0 && range.first + range.count <= count;
}

}  // namespace

CacheMask whole_cache(const StateShape& shape, std::int64_t rows) {
  return {.layers = {0, shape.layers}, .heads = {0, shape.kv_heads}, .rows = {0, rows}};
}

Result<bool> transplant(const EngineSequence& donor, EngineSequence& recipient,
                        const CacheMask& mask) {
  const StateShape shape = recipient.state_shape();
  if (donor.state_shape() != shape) {
    return Error{ErrorKind::usage,
                 "two caches of another shape or format; accepted: state of an equal cache"};
  }
  if (!is_within(mask.layers, shape.layers) || !is_within(mask.heads, shape.kv_heads)) {
    return Error{ErrorKind::usage,
                 fmt::format("state of layers or heads that are not there; accepted: {} layers of "
                             "{} heads",
                             shape.layers, shape.kv_heads)};
  }
  if (mask.rows.count == 0) return true;
  for (std::int64_t i = 0; i < mask.layers.count; ++i) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      if (part == KvPart::key ? !mask.keys : !mask.values) continue;
      const StateBlock block{mask.layers.first + i, part, mask.rows.first, mask.rows.count};
      Result<bool> done = transplant_block(donor, recipient, block, mask.heads);
      if (!done) return done;
    }
  }
  return true;
}

Result<Fork> Fork::copy() const {
  Result<std::unique_ptr<EngineSequence>> saved = sequence->save();
  if (!saved) return saved.error();
  return Fork{std::move(*saved), tokens};
}

Result<EnginePass> Fork::pass(const PassRequest& request) {
  return sequence->pass(tokens, {cached_rows(), 1, cached_rows()}, request);
}

Result<PatchedPass> patched_pass(const Fork& donor, const EnginePass& donor_pass,
                                 const Fork& recipient, const StatePatch& patch) {
  Result<Fork> copied = recipient.copy();
  if (!copied) return copied.error();
  if (patch.cache) {
    const Result<bool> done = transplant(*donor.sequence, *copied->sequence, *patch.cache);
    if (!done) return done.error();
  }
  std::vector<HiddenReplacement> replaced;
  replaced.reserve(patch.hidden.size());
  for (const std::int64_t layer : patch.hidden) {
    const StateValues* hidden = hidden_of(donor_pass, layer);
    if (hidden == nullptr) {
      return Error{ErrorKind::usage,
                   fmt::format("the hidden state behind layer {}, which the donor's pass lacks; "
                               "accepted: layers of a pass with layer_values",
                               layer)};
    }
    replaced.push_back({layer, 0, hidden->values});
  }
  Result<EnginePass> pass = copied->pass({.layer_values = true, .replaced = replaced});
  if (!pass) return pass.error();
  return PatchedPass{std::move(*pass), std::move(*copied)};
}

Result<std::vector<std::int64_t>> greedy_continuation(Fork& fork, std::int64_t first,
                                                      std::int64_t count) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  for (std::int64_t next = first; std::ssize(tokens) < count;) {
    tokens.push_back(next);
    if (std::ssize(tokens) == count) break;
    fork.tokens.push_back(static_cast<TokenId>(next));
    const Result<EnginePass> pass = fork.pass({});
    if (!pass) return pass.error();
    next = argmax_of(pass->logits);
  }
  return tokens;
}

}  // namespace kvsim::experiments
