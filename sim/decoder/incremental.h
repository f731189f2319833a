// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "sim/decoder/formats.h"
#include "sim/decoder/kv_cache.h"
#include "sim/decoder/launch.h"
#include "sim/decoder/plants.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder/weights_view.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"
#include "softfloat/result.h"

/// A decoder that runs pass by pass with a K/V cache, every operator by the kernel that a dispatch
/// names.
namespace kvsim {

/// How one arm computes.
struct DecoderArmOptions {
  DispatchChoice dispatch;
  /// Format of activations where dispatch.dispatch().formats leaves it open; a model's own.
  softfloat::Format storage = softfloat::bfloat16;
  AttentionOptions attention = {};
  EngineOptions engine = {};  ///< changes no bit
  Plant plant = Plant::none;
  /// Where the RoPE factors come from instead of the dispatch's kernel; may be empty.
  RopeSource rope_source = {};
};

/// A result of one operator, given to an observer while it is there.
struct OperatorOutput {
  std::int64_t layer = 0;      ///< −1: before the first layer; the number of layers: after the last
  std::string_view operation;  ///< "embedding", "attention-norm", "query", …, "hidden", "logits"
  std::int64_t rows = 0;       ///< that the pass computes
  std::int64_t width = 0;
  std::span<const double> values;  ///< [rows][width]; exact
};

/// A row of hidden states that flows on in place of the one that a layer gave.
struct HiddenReplacement {
  std::int64_t layer = 0;          ///< behind which
  std::int64_t row = 0;            ///< of the pass
  std::span<const double> values;  ///< [hidden], numbers of the activations' format
};

/// Tokens that are computed together, against the rows that the cache holds before them.
struct DecoderPass {
  std::span<const std::int32_t> tokens;
  /// The cache's row of the first token: as many rows are kept, later ones are forgotten.
  std::int64_t first_row = 0;
  /// Of RoPE, one for each token; empty: first_row + i.
  std::span<const std::int64_t> positions = {};
  std::int64_t padding = 0;  ///< rows at the start of the sequence that no later query sees
  DecoderLaunch launch = {};
  /// The first so many rows of a pass that begins with row 0: the cache has them already, with the
  /// bits that this pass would give them (keeps_rows()). They are in the launch, but not computed,
  /// and no observer sees them.
  std::int64_t known_rows = 0;
  std::span<const HiddenReplacement> replaced = {};  ///< what observers and digests see, too
  bool all_logits = false;                           ///< of every row, not only of the last one
  bool hidden_digests = false;  ///< of the last row's hidden state after each layer
  std::function<void(const OperatorOutput&)> observer;  ///< may be empty
};

/// What a pass gives.
struct DecoderPassResult {
  std::vector<double> logits;  ///< [vocabulary] of the last row, or [rows][vocabulary]; exact
  std::vector<std::string> hidden_digests;  ///< as KvCache::digest(), one for each layer
  std::int64_t multiply_adds = 0;           ///< of linear layers and attention, known rows included
  bool exp_bounded = false;  ///< an exponential of attention is known within bounds only
};

/// A model under one dispatch. Movable; reads the weights where they stand. One pass at a time.
class IncrementalDecoder {
 public:
  /// Errors (usage): those of check_shape(), check_weights() and resolve_formats(), a kernel that
  /// is not in its table.
  [[nodiscard]] static Result<IncrementalDecoder> make(const DecoderShape& shape,
                                                       DecoderWeights weights,
                                                       const DecoderArmOptions& options);

  IncrementalDecoder(IncrementalDecoder&&) noexcept;
  IncrementalDecoder& operator=(IncrementalDecoder&&) noexcept;
  ~IncrementalDecoder();

  /// An empty cache of this decoder's shape and format.
  [[nodiscard]] KvCache new_cache() const;
  [[nodiscard]] const DecoderShape& shape() const;
  /// Formats as resolved.
  [[nodiscard]] const DecoderFormats& formats() const;

  /// Whether a pass over rows 0 … after − 1 gives the first `before` of them the bits that they
  /// have after a pass over these alone, for every token: decided kernel by kernel from the
  /// dispatch and the sizes (sim/decoder/kept_rows.h), but for the sign of attention outputs that
  /// are exactly zero. True at most where 0 < before < after.
  [[nodiscard]] bool keeps_rows(std::int64_t before, std::int64_t after) const;

  /// Computes the tokens and appends their keys and values to the cache. Errors (usage): no token,
  /// one outside the vocabulary, fewer rows in the cache than first_row, a cache of another shape
  /// or format, as many positions as tokens or none, a negative position, padding that leaves no
  /// row; known rows of a pass that keeps_rows() refuses, begins later, gives positions, padding or
  /// neighbours, wants all logits, or whose own values are not finite; a replacement behind no
  /// layer, of a row that is not computed, or with other than the format's numbers; errors of the
  /// kernels. After an error the cache holds min(rows(), first_row) rows.
  [[nodiscard]] Result<DecoderPassResult> pass(KvCache& cache, const DecoderPass& pass);

 private:
  class State;
  explicit IncrementalDecoder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvsim
