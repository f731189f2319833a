// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/torch/decoder.h"
#include "model/checkpoint.h"
#include "sim/dispatch_choice.h"
#include "sim/engine/columns.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// A whole decoder on libtorch and in the simulator, compared bit by bit.
namespace kvsim::gpu {

struct DecoderCheckOptions {
  softfloat::Format storage;  ///< of weights, hidden states, K/V and logits
  AttentionFunction attention = AttentionFunction::sdpa;
  std::int64_t prefill = 64;  ///< tokens of the first pass, drawn from the vocabulary
  std::int64_t decode = 16;   ///< passes of one token each, libtorch's most likely one
  std::uint64_t seed = 1;     ///< of the tokens
  /// RoPE factors are libtorch's, as data: it takes them from a vector library whose cosines are
  /// not correctly rounded. Otherwise the dispatch's kernel makes them.
  bool rope_as_data = true;
  EngineOptions engine = {};
};

/// Results of one operator, over all layers and passes.
struct OperatorTotals {
  std::string operation;  ///< "query-rope", "hidden", "logits": those of IncrementalDecoder
  std::int64_t compared = 0;
  std::int64_t different = 0;
};

/// Where the two first part.
struct FirstDifference {
  std::int64_t pass = 0;   ///< 0 is the prefill
  std::int64_t layer = 0;  ///< −1: before the first layer; the number of layers: after the last
  std::string operation;
  std::int64_t row = 0;  ///< of the pass
  std::int64_t column = 0;
  double seen = 0;
  double simulated = 0;
};

struct DecoderCheckOutcome {
  std::int64_t passes = 0;
  std::vector<OperatorTotals> operators;  ///< in the order of a layer
  std::optional<FirstDifference> first;
  std::int64_t rope_compared = 0;   ///< cosines and sines of the prefill and the decode steps
  std::int64_t rope_different = 0;  ///< that the dispatch's kernel makes otherwise

  /// The totals of that name; empty ones where there are none.
  [[nodiscard]] OperatorTotals totals(std::string_view operation) const;
};

/// A prefill and decode steps, cache on, one thread, every logit of every row: libtorch under
/// current_setting(), the simulator under the dispatch, whose attention lines must be those that
/// `attention` asks for and whose formats are set to `storage`. Each pass gets the same tokens on
/// both sides. Errors: (unavailable) no libtorch; (usage) as of the two decoders.
[[nodiscard]] Result<DecoderCheckOutcome> check_decoder(const Checkpoint& checkpoint,
                                                        DispatchChoice dispatch,
                                                        const DecoderCheckOptions& options);

}  // namespace kvsim::gpu
