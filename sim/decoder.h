// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch.h"
#include "sim/predict/difference.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"

/// A decoder with seeded weights, computed twice: how the rounding differences of two kernels grow
/// from layer to layer.
namespace kvsim {

/// Of what one layer adds to the residual stream. As factors of DecoderOptions: by how much larger
/// than what the seeded weights give the two branches are; `common` is no factor.
struct BranchSizes {
  double attention = 1;
  double mlp = 1;
  /// Root mean square of what is the same for every row: a seeded vector behind both branches.
  double common = 0;
};

/// The two ways to compute the last token's hidden state. Cache-on: the prefix at once, then the
/// last token alone against the cache. Cache-off: prefix and last token at once.
struct DecoderOptions {
  DecoderShape shape;
  softfloat::Format storage = softfloat::binary16;
  /// What is not in `storage`, and not the kernels' own: `weights` of all decoders, whose numbers
  /// storage must have; `operands`, `accumulator` and `kv` of cache-on and cache-off. The others do
  /// not count.
  DispatchFormats formats = {};
  const Dispatch* on = nullptr;   ///< of cache-on; required
  const Dispatch* off = nullptr;  ///< of cache-off; required
  /// Attention kernels instead of those of the dispatches: for the last token of cache-on, and for
  /// everything else. Empty: as the dispatches say.
  std::string_view decode_attention;
  std::string_view prefill_attention;
  std::int64_t prefix = 16;  ///< tokens before the last one; at least 1
  /// Rows of each pass, in order: prefix + 1 together. Empty: as above. A pass of one row behind
  /// others decodes.
  std::vector<std::int64_t> on_passes = {};
  std::vector<std::int64_t> off_passes = {};
  std::int64_t layers = 0;  ///< the first so many layers; 0: all
  std::uint64_t seed = 1;
  /// By layer; empty: 1 for all. See BranchSizes.
  std::vector<BranchSizes> branch_factors = {};
  /// RoPE factors in storage, instead of those of the kernels, for all but the binary64 decoder;
  /// may be empty.
  RopeSource rope_source = {};
  bool controls = true;  ///< also the exact and the binary64 decoder, which two parts need
  AttentionOptions attention;
  EngineOptions engine;  ///< changes no bit
  /// Called now and then with the finished share, 0 … 1, from the caller's thread. May be empty.
  std::function<void(double)> progress;
};

/// How far a state lies from a reference, whose ‖·‖ is what is relative.
struct StateError {
  double l2 = 0;
  double relative_l2 = 0;
  double cosine = 1;
  double max_ulp = 0;  ///< in units in the last place of the storage format at the reference
};

/// The last token's hidden state after one layer.
struct LayerDrift {
  std::int64_t layer = 0;   ///< from 0
  VectorDifference on_off;  ///< cache-on against cache-off
  BranchSizes branches;     ///< root mean squares of cache-on
  // The rest only with controls. `accumulation`: against exact operators with the same storage.
  StateError on_accumulation;
  StateError off_accumulation;
  StateError storage;  ///< exact operators with this storage, against binary64: storage alone
  StateError on_total;
  StateError off_total;  ///< against binary64
};

/// What run_decoder() finds.
struct DecoderReport {
  std::vector<LayerDrift> layers;
  VectorDifference first_keys;    ///< cache-on against cache-off, layer 0, all tokens, before RoPE
  VectorDifference first_values;  ///< the same of the values
  /// The last token's hidden state after the last layer, numbers of storage.
  std::vector<float> on_state;
  std::vector<float> off_state;
  std::int64_t multiply_adds = 0;  ///< of the linear layers, all decoders together
  bool exp_bounded = false;  ///< an attention kernel's exponential is known within bounds only
};

/// Whether sizes and memory are accepted, before anything is computed. Errors (usage): those of
/// check_shape(); a prefix below 1; passes that are not prefix + 1 rows; factors that are not one
/// for each layer; a weight matrix of more than 2^28 numbers (1 GiB), or more than
/// 2^27 numbers in the rows of one decoder.
[[nodiscard]] Result<bool> check_decoder(const DecoderOptions& options);

/// Runs both decoders side by side, one weight matrix at a time; memory is one matrix and some
/// rows. Weights are fill_random_weights() with deviation 1 ÷ √terms, norm weights 1 + 0.1 n
/// (Gemma: 0.1 n), biases 0.1 n, the first hidden states n × DecoderShape::embedding_scale, all
/// rounded to storage. A branch factor multiplies the weights that make the branch: the norm behind
/// it, or else its last projection and that one's bias.
///
/// Errors (usage): those of check_decoder() and of the kernels; no dispatch.
[[nodiscard]] Result<DecoderReport> run_decoder(const DecoderOptions& options);

}  // namespace kvsim
